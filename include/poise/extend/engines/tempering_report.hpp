/// What is told of a tempered run: the ladder, its swaps, the way of a few replicas, and log Z.
#pragma once

#include <cstdint>
#include <vector>

#include <poise/extend/engines/ladder.hpp>

namespace poise {

/// With one rung nothing was left to sample after variables were summed out: draws are independent and log Z is exact.
struct TemperingReport {
  std::vector<double> betas;
  std::vector<double> acceptance;  ///< of swaps of each pair of neighbours, over all ladders
  double barrier = 0.0;
  std::uint64_t round_trips = 0;  ///< of all replicas of all ladders
  std::uint64_t steps = 0;        ///< of each ladder
  std::size_t ladders = 0;
  ReplicaPaths paths;  ///< of the first ladder
  /// log Z of the distribution that is sampled, if that of the hot end is known; not a number otherwise. The error is
  /// that of the mean over ladders, not a number with one of them.
  double log_partition = 0.0;
  double log_partition_error = 0.0;
  std::vector<double> log_partition_by_ladder;
  double components =
      0.0;  ///< that two ladders differ in, on average, where these were exchanged; 0 where they were not
};

}  // namespace poise
