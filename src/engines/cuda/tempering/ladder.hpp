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

/// Two ladders that exchange components (lanes/components.hpp).
struct CudaExchange {
  std::vector<std::uint64_t> components;  ///< by rung, as all that follows
  std::vector<std::uint64_t> tried;
  std::vector<std::uint8_t> is_off;
  std::uint64_t taken = 0;  ///< random numbers
};

/// `Rungs` are those of a TemperedEngine: a ladder, and the random numbers of its swaps.
template <class Rungs>
[[nodiscard]] CudaLadder to_device(const Rungs& rungs) {
  const LadderNumbers from = rungs.ladder.numbers();
  return {.replica_at = {from.replica_at.begin(), from.replica_at.end()},
          .came_from_cold = from.came_from_cold,
          .accepted = from.counts.accepted,
          .tried = from.counts.tried,
          .below = from.bridges.below,
          .above = from.bridges.above,
          .bridged = static_cast<std::uint64_t>(from.bridges.count),
          .round_trips = from.round_trips,
          .taken = rungs.rng.position()};
}

template <class Rungs>
void to_host(const CudaLadder& from, Rungs& rungs) {
  LadderNumbers numbers;
  numbers.replica_at.assign(from.replica_at.begin(), from.replica_at.end());
  numbers.came_from_cold = from.came_from_cold;
  numbers.counts.accepted = from.accepted;
  numbers.counts.tried = from.tried;
  numbers.bridges = {from.below, from.above, static_cast<double>(from.bridged)};
  numbers.round_trips = from.round_trips;
  rungs.ladder.set_numbers(numbers);
  rungs.rng.move_to(from.taken);
}

/// Steps from number `step` on up to the next one after which paths of replicas have a point.
[[nodiscard]] inline std::uint64_t steps_to_point(const Ladder& ladder, std::uint64_t step) {
  const std::uint64_t stride = ladder.paths().stride();
  return (stride - step % stride) % stride + 1;
}

}  // namespace poise
