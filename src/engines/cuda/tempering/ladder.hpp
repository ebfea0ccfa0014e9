/// A ladder of tempering as a GPU has it.
#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace poise
