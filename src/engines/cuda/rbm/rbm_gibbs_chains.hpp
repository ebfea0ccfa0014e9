/// Chains of a restricted Boltzmann machine on a GPU: block Gibbs, with the draws of the CPU (kernel/rbm_gibbs.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <poise/types.hpp>
#include "models/rbm/rbm.hpp"

namespace poise {

/// Sums of states of block Gibbs, by chain.
struct CudaRbmSums {
  /// Takes them from [sum][chain].
  CudaRbmSums(const double* from, std::size_t chains)
      : log_prob(from, from + chains),
        on(from + chains, from + 2 * chains),
        different(from + 2 * chains, from + 3 * chains) {}

  std::vector<double> log_prob;
  std::vector<double> on;
  std::vector<double> different;  ///< units that are not as in the reference
};

class CudaRbmGibbsChains {
 public:
  /// Units of a layer that there may be: sums of weights of sixteen bits have 31.
  static constexpr Index kMostUnits = 65536;

  /// Chains of the RBM at beta = 1. Throws an InputError where the GPU has too little memory. `doubt` is for tests: the
  /// larger it is, the more units are decided exactly, with the same result.
  CudaRbmGibbsChains(const Rbm& target, std::size_t chains, std::uint64_t seed, std::uint64_t first_chain,
                     double doubt = 0.0);
  ~CudaRbmGibbsChains();
  CudaRbmGibbsChains(const CudaRbmGibbsChains&) = delete;
  CudaRbmGibbsChains& operator=(const CudaRbmGibbsChains&) = delete;

  void set_reference(std::span<const Value> reference);

  /// Returns when the steps are made.
  void advance(std::uint64_t steps);
  /// Steps say where chains are in their streams of random numbers.
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  void set_steps(std::uint64_t steps);

  // One chain; other threads may set and get other chains at the same time, while none advances.
  void set_levels(std::size_t chain, std::span<const Value> levels);
  void get_levels(std::size_t chain, std::span<Value> levels) const;

  /// Counts steps at which units are on, from here on.
  void start_counting();
  [[nodiscard]] bool counts() const { return counting_; }
  /// Steps of a chain at which each unit was on since then, and what they are to be from here on.
  [[nodiscard]] std::vector<std::uint64_t> up_counts(std::size_t chain) const;
  void set_up_counts(std::size_t chain, std::span<const std::uint64_t> counts);

  using Sums = CudaRbmSums;
  [[nodiscard]] Sums sums() const;
  /// Makes so many steps before each of the draws, and gives sums of all of them; the host waits once.
  std::vector<Sums> advance_and_sum(std::uint64_t steps, std::size_t draws);

 private:
  struct OnDevice;
  static constexpr std::size_t kSums = 3;

  void start_steps(std::uint64_t steps);
  void start_sums(std::size_t draw) const;
  [[nodiscard]] std::vector<Sums> fetch_sums(std::size_t draws) const;

  std::size_t chains_;
  Index visible_;
  std::uint64_t steps_ = 0;
  bool counting_ = false;
  std::unique_ptr<OnDevice> device_;
};

}  // namespace poise
