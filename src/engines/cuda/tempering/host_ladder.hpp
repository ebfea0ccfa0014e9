/// Ladders of the host and of a GPU.
#pragma once

#include <cstdint>

#include "engines/cuda/tempering/ladder.hpp"
#include <poise/extend/engines/ladder.hpp>

namespace poise {

/// `taken` are the random numbers that its swaps took.
[[nodiscard]] inline CudaLadder to_device(const Ladder& ladder, std::uint64_t taken) {
  const LadderNumbers from = ladder.numbers();
  return {.replica_at = {from.replica_at.begin(), from.replica_at.end()},
          .came_from_cold = from.came_from_cold,
          .accepted = from.counts.accepted,
          .tried = from.counts.tried,
          .below = from.bridges.below,
          .above = from.bridges.above,
          .bridged = static_cast<std::uint64_t>(from.bridges.count),
          .round_trips = from.round_trips,
          .taken = taken};
}

[[nodiscard]] inline LadderNumbers to_host(const CudaLadder& from) {
  LadderNumbers numbers;
  numbers.replica_at.assign(from.replica_at.begin(), from.replica_at.end());
  numbers.came_from_cold = from.came_from_cold;
  numbers.counts.accepted = from.accepted;
  numbers.counts.tried = from.tried;
  numbers.bridges = {from.below, from.above, static_cast<double>(from.bridged)};
  numbers.round_trips = from.round_trips;
  return numbers;
}

/// Steps from number `step` on up to the next one after which paths of replicas have a point.
[[nodiscard]] inline std::uint64_t steps_to_point(const Ladder& ladder, std::uint64_t step) {
  const std::uint64_t stride = ladder.paths().stride();
  return (stride - step % stride) % stride + 1;
}

}  // namespace poise
