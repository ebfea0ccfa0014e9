/// Single flips on a graph, locally balanced: what kernels work on, and how they are started.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/cuda/flips/flip_tree.hpp"
#include "engines/cuda/flips/flip_weigher.hpp"
#include "engines/cuda/flips/graph_flip_plan.hpp"

namespace poise::cuda {

/// Arrays of a FlipGraph.
struct GraphView {
  std::uint32_t variables;
  FlipTree tree;
  const std::uint32_t* first;
  const std::uint32_t* affected;
  const std::int64_t* couplings;
  const std::uint32_t* first_node;
  const std::uint32_t* touched;
  const std::int64_t* fields;  ///< of each variable, in units
};

struct GraphChainsView {
  SpinField* spin_fields;  ///< [chain][leaf]
  double* leaves;          ///< [chain][leaf]: weights of flips
  double* nodes;           ///< [chain][node]
  std::uint32_t* state;    ///< [chain][word]: bits of 32 variables
  std::uint32_t words;     ///< of a chain
  std::uint32_t chains;
  double* accepted;  ///< acceptance probabilities of each chain, summed
  std::int64_t* up;  ///< [chain][variable]: steps at which it went down less those at which it went up; or null
  std::uint64_t first_chain;
  std::uint64_t seed;
  std::uint64_t first_step;
  std::uint64_t counted_from;  ///< the step at which counting began
};

/// Fields, weights and sums from the states.
void launch_graph_prepare(const GraphView& graph, const FlipWeigher& weigher, const GraphChainsView& chains);

void launch_graph_flips(const GraphView& graph, const FlipWeigher& weigher, const GraphChainsView& chains,
                        const GraphFlipPlan& plan, std::uint64_t steps);

/// The probabilities that a step from each state has: `leaves` over the total, and acceptance, [chain][variable].
void launch_graph_probabilities(const GraphView& graph, const FlipWeigher& weigher, const GraphChainsView& chains,
                                double* totals, double* acceptance);

struct GraphSums {
  std::int64_t* up;      ///< of each chain: variables
  std::int64_t* fields;  ///< of variables that are up
  std::int64_t* pairs;   ///< weights of edges whose ends differ
  std::int64_t* different;
};
/// What log p is summed from.
struct GraphTerms {
  const std::int64_t* fields;
  const std::int64_t* weights;  ///< of edges, beside GraphView::affected; null where each counts one
  const std::uint32_t* reference;
};
/// Adds to `sums`.
void launch_graph_sums(const GraphView& graph, const GraphChainsView& chains, const GraphTerms& terms,
                       const GraphSums& sums);

}  // namespace poise::cuda
