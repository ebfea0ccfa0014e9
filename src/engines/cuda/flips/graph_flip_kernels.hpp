/// Single flips on a graph, locally balanced: what kernels work on, and how they are started.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engines/common/host_device.hpp"
#include "engines/cuda/flips/flip_kernels.hpp"
#include "engines/cuda/flips/flip_weigher.hpp"

namespace poise::cuda {

// Where chains keep what they work on: in the memory of a multiprocessor as far as it fits and as many chains as
// there are can be there together, in that of the device otherwise. No draw depends on it.

/// What is in shared memory: fields, weights and sums of them, the sums above the weights, or nothing.
enum class Held { all, nodes, none };

struct GraphFlipShape {
  std::size_t chains = 0;
  FlipTree tree;
  double affected = 1.0;  ///< flips that a flip affects, on average
};

struct GraphFlipPlan {
  Held held = Held::none;
  std::size_t shared_bytes = 0;  ///< of a chain, which is a block
  bool fits = false;
  double microseconds = 0.0;  ///< of a step of all chains, roughly
};

/// Words of eight bytes that a chain has in shared memory.
POISE_BOTH std::size_t held_words(const FlipTree& tree, Held held) {
  return (held == Held::all ? std::size_t{2} * tree.leaves : 0) + (held == Held::none ? 0 : tree.nodes);
}

// Estimates, to choose among plans by. A step waits for one load, shuffle or sum after the other; more chains at a
// time hide that until the memory of the device has no more to give.
inline constexpr double kSharedStepMicroseconds = 1.0;
inline constexpr double kNodesStepMicroseconds = 3.0;
inline constexpr double kDeviceStepMicroseconds = 4.0;
inline constexpr double kBytesOfAffected = 350.0;  // a field, a weight, and 32 weights that are summed
inline constexpr double kBytesOfChoice = 300.0;
inline constexpr double kBytesOfMicrosecond = 2.5e6;

/// Blocks that a multiprocessor takes at once at most.
inline constexpr unsigned kChainsOfMultiprocessor = 32;

inline GraphFlipPlan plan_graph_flips(const GraphFlipShape& shape, const DeviceShape& device, Held held) {
  constexpr std::size_t kReserved = 1024;  // bytes of each block, by the system
  GraphFlipPlan plan;
  plan.held = held;
  plan.shared_bytes = held_words(shape.tree, held) * sizeof(double);
  plan.fits = plan.shared_bytes <= device.shared_per_block;
  if (!plan.fits) return plan;
  const std::size_t together = std::clamp<std::size_t>(
      device.shared_per_multiprocessor / (plan.shared_bytes + kReserved), 1, kChainsOfMultiprocessor);
  const auto chains = static_cast<double>(shape.chains);
  const double rounds = std::max(1.0, chains / static_cast<double>(together * device.multiprocessors));
  if (held == Held::all) {
    plan.microseconds = rounds * kSharedStepMicroseconds;
    return plan;
  }
  const double transfer = chains * (kBytesOfChoice + shape.affected * kBytesOfAffected) / kBytesOfMicrosecond;
  plan.microseconds =
      std::max(rounds * (held == Held::nodes ? kNodesStepMicroseconds : kDeviceStepMicroseconds), transfer);
  return plan;
}

/// The fastest, by these estimates; of such that are as fast, the one that has the most in shared memory.
inline GraphFlipPlan plan_graph_flips(const GraphFlipShape& shape, const DeviceShape& device) {
  GraphFlipPlan best = plan_graph_flips(shape, device, Held::none);
  for (const Held held : {Held::nodes, Held::all}) {
    const GraphFlipPlan plan = plan_graph_flips(shape, device, held);
    if (plan.fits && plan.microseconds <= best.microseconds) best = plan;
  }
  return best;
}

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
  double stretch;              ///< of levels that acceptance is compared with (step_guards.hpp)
};

/// Fields, weights and sums from the states.
void launch_graph_prepare(const GraphView& graph, const FlipWeigher& weigher, const GraphChainsView& chains);

void launch_graph_flips(const GraphView& graph, const FlipWeigher& weigher, const GraphChainsView& chains,
                        const GraphFlipPlan& plan, std::uint64_t steps);

/// The probabilities that a step from each state has: `leaves` over the total, and acceptance, [chain][variable].
void launch_graph_probabilities(const GraphView& graph, const FlipWeigher& weigher, const GraphChainsView& chains,
                                double* totals, double* acceptance);

/// What log p is summed from.
struct GraphTerms {
  const std::int64_t* fields;
  const std::int64_t* weights;  ///< of edges, beside GraphView::affected; null where each counts one
  const std::uint32_t* reference;
};
/// Adds to `sums`.
void launch_graph_sums(const GraphView& graph, const GraphChainsView& chains, const GraphTerms& terms,
                       const FlipSums& sums);

}  // namespace poise::cuda
