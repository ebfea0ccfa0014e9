/// Chains of single flips on an Ising model, on a lattice or on any graph, on a GPU: locally balanced proposals, a warp
/// for each chain.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <poise/extend/learning/balancing_function.hpp>
#include <poise/types.hpp>
#include "engines/cuda/flips/flip_kernels.hpp"
#include "models/ising/graph_ising.hpp"

namespace poise {

namespace cuda {
class ChainCounts;
}

/// What chains on lattices and on graphs have in common: steps, acceptance and counts.
class CudaCountedChains {
 public:
  CudaCountedChains(const CudaCountedChains&) = delete;
  CudaCountedChains& operator=(const CudaCountedChains&) = delete;

  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  void set_steps(std::uint64_t steps) { steps_ = steps; }

  // One chain; other threads may set and get other chains at the same time, while none advances.
  virtual void set_levels(std::size_t chain, std::span<const Value> levels) = 0;
  virtual void get_levels(std::size_t chain, std::span<Value> levels) const = 0;

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

  struct Sums {
    std::vector<std::int64_t> up;         ///< variables
    std::vector<std::int64_t> fields;     ///< of variables that are up
    std::vector<std::int64_t> pairs;      ///< edges whose ends differ, or their weights
    std::vector<std::int64_t> different;  ///< variables that are not as in the reference
  };
  /// The probabilities of a step from the present states, for tests: [chain][variable].
  struct Probabilities {
    std::vector<double> proposal;
    std::vector<double> acceptance;
  };

 protected:
  CudaCountedChains(std::size_t chains, Index variables);
  virtual ~CudaCountedChains();

  /// launch(sums) has the device sum all states, in `summed` on the device.
  template <class Array, class Launch>
  [[nodiscard]] Sums find_sums(const Array& summed, Launch&& launch) const;

  std::size_t chains_;
  Index variables_;
  std::uint64_t steps_ = 0;
  std::unique_ptr<cuda::ChainCounts> counts_;
};

/// A lattice of spins, and what flipping a site is worth: [code][site], with the codes of flip_kernels.hpp.
struct CudaLattice {
  Index rows = 0;
  Index columns = 0;
  bool torus = false;
  std::vector<double> log_ratios;    ///< of a flip
  std::vector<std::int64_t> fields;  ///< of each site, for log p; empty where all are 0
  std::vector<Value> reference;

  [[nodiscard]] Index sites() const { return rows * columns; }
};

class CudaFlipChains final : public CudaCountedChains {
 public:
  /// Throws an InputError where the GPU has too little memory.
  CudaFlipChains(CudaLattice lattice, std::size_t chains, std::uint64_t seed, std::uint64_t first_chain);
  ~CudaFlipChains() override;

  /// log g(t) of every flip, [code][site]: proposals are proportional to g.
  void set_weights(std::span<const double> log_g);

  /// Returns when the steps are made.
  void advance(std::uint64_t steps);

  void set_levels(std::size_t chain, std::span<const Value> levels) override;
  void get_levels(std::size_t chain, std::span<Value> levels) const override;

  [[nodiscard]] Sums sums() const;
  [[nodiscard]] Probabilities probabilities() const;

 private:
  struct OnDevice;
  [[nodiscard]] std::size_t words() const;  // of a chain

  CudaLattice lattice_;
  std::uint64_t seed_;
  std::uint64_t first_chain_;
  std::unique_ptr<OnDevice> device_;
};

struct CudaGraph {
  std::shared_ptr<const GraphIsing> target;
  /// Where log p is a lattice's: its fields, in its own unit. Every edge counts one then. Empty where log p is that of
  /// the target.
  std::vector<std::int64_t> lattice_fields = {};
  std::vector<Value> reference;
};

class CudaGraphFlipChains final : public CudaCountedChains {
 public:
  /// Throws an InputError where the GPU has too little memory.
  CudaGraphFlipChains(CudaGraph graph, std::size_t chains, std::uint64_t seed, std::uint64_t first_chain);
  ~CudaGraphFlipChains() override;

  /// Proposals are proportional to g.
  void set_function(const BalancingFunction& function);

  /// Returns when the steps are made.
  void advance(std::uint64_t steps);

  void set_levels(std::size_t chain, std::span<const Value> levels) override;
  void get_levels(std::size_t chain, std::span<Value> levels) const override;

  [[nodiscard]] Sums sums() const;
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

  std::unique_ptr<OnDevice> device_;
};

}  // namespace poise
