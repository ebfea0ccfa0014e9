/// How far a few chains are from the ground truth, with an error from leaving each of them out.
#pragma once

#include <span>
#include <vector>

#include <poise/types.hpp>

#include "studies/distances.hpp"
#include "studies/estimate.hpp"

namespace poise::reproduction {

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
