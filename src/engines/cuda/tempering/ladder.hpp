/// A ladder of tempering as a GPU has it, and to and from that of the host.
#pragma once

#include <cstdint>
#include <vector>

#include <poise/extend/engines/ladder.hpp>

namespace poise {

/// Where replicas of one ladder are, and what its swaps tell (temper/ladder.hpp).
struct CudaLadder {
  std::vector<std::uint8_t> replica_at;      ///< of each rung
  std::vector<std::uint8_t> came_from_cold;  ///< of each replica
  std::vector<double> accepted;              ///< of each pair of rungs, as all that follows
  std::vector<std::uint64_t> tried;
  std::vector<double> below;
  std::vector<double> above;
  std::uint64_t bridged = 0;
  std::uint64_t round_trips = 0;
  std::uint64_t taken = 0;  ///< random numbers of swaps
};

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
