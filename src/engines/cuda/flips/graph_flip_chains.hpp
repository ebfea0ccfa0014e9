/// Chains of single flips on an Ising model on any graph, on a GPU: locally balanced proposals, a warp for each chain.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <poise/extend/learning/balancing_function.hpp>
#include "engines/cuda/flips/flip_chains.hpp"
#include "models/ising/graph_ising.hpp"
#include <poise/types.hpp>

namespace poise {

struct CudaGraph {
  std::shared_ptr<const GraphIsing> target;
  /// Where log p is a lattice's: its fields, in its own unit. Every edge counts one then. Empty where log p is that of
  /// the target.
  std::vector<std::int64_t> lattice_fields = {};
  std::vector<Value> reference;
};

class CudaGraphFlipChains {
 public:
  /// Throws an InputError where the GPU has too little memory.
  CudaGraphFlipChains(CudaGraph graph, std::size_t chains, std::uint64_t seed, std::uint64_t first_chain);
  ~CudaGraphFlipChains();
  CudaGraphFlipChains(const CudaGraphFlipChains&) = delete;
  CudaGraphFlipChains& operator=(const CudaGraphFlipChains&) = delete;

  /// Proposals are proportional to g.
  void set_function(const BalancingFunction& function);

  /// Returns when the steps are made.
  void advance(std::uint64_t steps);
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  void set_steps(std::uint64_t steps) { steps_ = steps; }

  // Of one chain; other threads may set and get other chains at the same time, while none advances.
  void set_levels(std::size_t chain, std::span<const Value> levels);
  void get_levels(std::size_t chain, std::span<Value> levels) const;

  /// Acceptance probabilities of each chain, summed.
  [[nodiscard]] std::vector<double> accepted() const;
  [[nodiscard]] double accepted(std::size_t chain) const;
  void set_accepted(std::size_t chain, double accepted);

  /// Counts steps at which variables are up, from here on.
  void start_counting();
  [[nodiscard]] bool counts() const;
  /// Steps of a chain at which each variable was up since then, and what they are to be from here on.
  [[nodiscard]] std::vector<std::int64_t> up_counts(std::size_t chain) const;
  void set_up_counts(std::size_t chain, std::span<const std::int64_t> counts);

  /// Variables for sites, and weights of edges for edges.
  using Sums = CudaFlipChains::Sums;
  [[nodiscard]] Sums sums() const;

  /// The probabilities of a step from the present states, for tests: [chain][variable].
  using Probabilities = CudaFlipChains::Probabilities;
  [[nodiscard]] Probabilities probabilities() const;

  /// Where chains keep what they work on, for tests: shared memory for all, for sums of weights, or for nothing.
  enum class Memory { all_shared, sums_shared, global };
  [[nodiscard]] Memory memory() const;
  /// No draw depends on it. Throws an InputError where it does not fit.
  void set_memory(Memory memory);

 private:
  class OnDevice;
  void upload_states() const;
  void prepare() const;

  std::size_t chains_;
  Index variables_;
  std::uint64_t steps_ = 0;
  std::unique_ptr<OnDevice> device_;
};

}  // namespace poise
