/// Chains of a restricted Boltzmann machine on a GPU: proposals from slopes of log p, of one change or of many.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <poise/balance/balancing_function.hpp>
#include <poise/target/rbm_weights.hpp>
#include <poise/types.hpp>

namespace poise {

/// What a proposal changes: one unit, or each by itself (kernel/factorised_law.hpp).
enum class CudaRbmForm { single, relaxation, langevin };

class CudaRbmChains {
 public:
  /// Visible units that there may be: with more, weights of single changes, of 24 bits, would be too coarse.
  static constexpr Index kMostVisible = 65536;

  /// Throws an InputError where the GPU has too little memory.
  CudaRbmChains(const RbmWeights& weights, CudaRbmForm form, std::size_t chains, std::uint64_t seed,
                std::uint64_t first_chain);
  ~CudaRbmChains();
  CudaRbmChains(const CudaRbmChains&) = delete;
  CudaRbmChains& operator=(const CudaRbmChains&) = delete;

  void set_function(const BalancingFunction& function);
  void set_reference(std::span<const Value> reference);

  /// Returns when the steps are made.
  void advance(std::uint64_t steps);
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  void set_steps(std::uint64_t steps);

  // Of one chain; other threads may set and get other chains at the same time, while none advances.
  void set_levels(std::size_t chain, std::span<const Value> levels);
  void get_levels(std::size_t chain, std::span<Value> levels) const;

  /// Acceptance probabilities of each chain, summed.
  [[nodiscard]] std::vector<double> accepted() const;
  [[nodiscard]] double accepted(std::size_t chain) const;
  void set_accepted(std::size_t chain, double accepted);

  /// Counts steps at which units are on, from here on.
  void start_counting();
  [[nodiscard]] bool counts() const { return counting_; }
  /// Steps of a chain at which each unit was on since then, and what they are to be from here on.
  [[nodiscard]] std::vector<std::int64_t> up_counts(std::size_t chain) const;
  void set_up_counts(std::size_t chain, std::span<const std::int64_t> counts);

  struct Sums {
    std::vector<double> log_prob;
    std::vector<std::int64_t> on;
    std::vector<std::int64_t> different;  ///< units that are not as in the reference
  };
  [[nodiscard]] Sums sums() const;

  /// What a step from the present states is made of, for tests.
  struct Law {
    std::vector<double> log_prob;         ///< of each chain, as acceptances have it
    std::vector<std::uint64_t> proposal;  ///< [chain][unit]: weights, or probabilities in units of 2^-32
  };
  [[nodiscard]] Law law() const;

 private:
  struct OnDevice;
  void prepare() const;
  void make_steps(std::uint64_t steps) const;

  std::size_t chains_;
  Index visible_;
  std::uint64_t steps_ = 0;
  bool counting_ = false;
  std::unique_ptr<OnDevice> device_;
};

}  // namespace poise
