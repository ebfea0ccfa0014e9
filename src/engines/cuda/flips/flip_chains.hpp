/// Chains of single flips on an Ising lattice, on a GPU: locally balanced proposals, a warp for each chain.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <poise/types.hpp>
#include "engines/cuda/flips/flip_kernels.hpp"

namespace poise {

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

class CudaFlipChains {
 public:
  /// Throws an InputError where the GPU has too little memory.
  CudaFlipChains(CudaLattice lattice, std::size_t chains, std::uint64_t seed, std::uint64_t first_chain);
  ~CudaFlipChains();
  CudaFlipChains(const CudaFlipChains&) = delete;
  CudaFlipChains& operator=(const CudaFlipChains&) = delete;

  /// log g(t) of every flip, [code][site]: proposals are proportional to g.
  void set_weights(std::span<const double> log_g);

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

  /// Counts steps at which sites are up, from here on.
  void start_counting();
  [[nodiscard]] bool counts() const;
  /// Steps of a chain at which each site was up since then, and what they are to be from here on.
  [[nodiscard]] std::vector<std::int64_t> up_counts(std::size_t chain) const;
  void set_up_counts(std::size_t chain, std::span<const std::int64_t> counts);

  struct Sums {
    std::vector<std::int64_t> up;         ///< sites
    std::vector<std::int64_t> fields;     ///< of sites that are up
    std::vector<std::int64_t> pairs;      ///< edges whose ends differ
    std::vector<std::int64_t> different;  ///< sites that are not as in the reference
  };
  [[nodiscard]] Sums sums() const;

  /// The probabilities of a step from the present states, for tests: [chain][site].
  struct Probabilities {
    std::vector<double> proposal;
    std::vector<double> acceptance;
  };
  [[nodiscard]] Probabilities probabilities() const;

 private:
  struct OnDevice;
  [[nodiscard]] std::size_t words() const;  // of a chain

  CudaLattice lattice_;
  std::size_t chains_;
  std::uint64_t seed_;
  std::uint64_t first_chain_;
  std::uint64_t steps_ = 0;
  std::unique_ptr<OnDevice> device_;
};

}  // namespace poise
