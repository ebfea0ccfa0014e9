/// Distances of chains: to reference draws, with their effective sample sizes, and from the ground truth (MMD).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <poise/types.hpp>
#include "studies/estimate.hpp"

namespace poise::reproduction {

/// Draws from the RBM that samplers are compared with, as zeros and ones, one after the other.
struct GroundTruth {
  std::vector<std::int8_t> draws;
  std::size_t count = 0;
};

/// Each of the first `chains` chains has a share of the reference draws to itself: a series of distances for each of
/// them, two bytes a step.
class DistanceRecorder {
 public:
  DistanceRecorder(const GroundTruth& truth, std::size_t chains, std::uint64_t steps);

  [[nodiscard]] std::size_t chains() const { return states_.size(); }
  /// Where a chain is before its first step.
  void begin(std::size_t chain, std::span<const Value> x);
  /// Where it is after its next step.
  void add(std::size_t chain, std::span<const Value> x);
  /// The estimator of TensorFlow Probability on every series of a chain; `pause` is called before each of them.
  [[nodiscard]] std::vector<double> effective_sizes(std::size_t chain, const std::function<void()>& pause) const;

 private:
  [[nodiscard]] const std::int8_t* column(std::size_t variable) const { return &by_variable_[variable * draws_]; }

  std::size_t draws_;                                  // of the reference that are used
  std::size_t share_;                                  // of each chain
  std::vector<std::int8_t> by_variable_;               // reference draws, variable by variable
  std::vector<std::vector<Value>> states_;             // of each chain
  std::vector<std::vector<std::uint16_t>> now_;        // distances of each chain at present
  std::vector<std::vector<std::uint16_t>> distances_;  // of each chain, step after step
};

/// The V-statistic of MMD^2 with the kernel exp(-part of the variables that differ), of all chains and of all but one.
struct DiscrepancyLook {
  double value = 0.0;
  std::vector<double> without;  ///< chain c
};

/// Jackknife: chains are independent (but for what they learn together), looks at different times are not.
[[nodiscard]] Estimate jackknife(const DiscrepancyLook& look);

/// The mean of several looks, chain by chain.
[[nodiscard]] DiscrepancyLook mean_of(std::span<const DiscrepancyLook> looks);

class Discrepancy {
 public:
  explicit Discrepancy(const GroundTruth& truth);

  /// `states` are the levels of all variables, one chain after the other.
  [[nodiscard]] DiscrepancyLook look(std::span<const Value> states) const;

 private:
  const GroundTruth& truth_;
  std::size_t variables_;
  double of_truth_ = 0.0;  // mean of the kernel over pairs of reference draws
};

}  // namespace poise::reproduction
