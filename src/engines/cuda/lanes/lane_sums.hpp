/// Sums over the states of draws whose chains are lanes, as they lie in memory: on a device, and on the host, which
/// fetches them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/cuda/lanes/lane_chains.hpp"

namespace poise::cuda {

/// Numbers of draws, one after the other: of all lanes of a draw log p in units, then variables that are not as in the
/// reference, then those at one level.
struct DrawSums {
  unsigned char* bytes;
  std::uint32_t lanes;

  /// Bytes of a draw.
  POISE_BOTH static std::size_t size(std::uint32_t lanes) { return 16 * static_cast<std::size_t>(lanes); }
  POISE_BOTH double* units(std::size_t draw) const { return reinterpret_cast<double*>(bytes + draw * size(lanes)); }
  POISE_BOTH std::uint32_t* different(std::size_t draw) const {
    return reinterpret_cast<std::uint32_t*>(units(draw) + lanes);
  }
  POISE_BOTH std::uint32_t* at_level(std::size_t draw) const { return different(draw) + lanes; }
};

struct SumsOfDraws {
  ExactView exact;
  std::uint32_t factors;
  const std::uint8_t* states;  ///< [draw][position][lane]
  std::size_t bytes;           ///< of the state of a draw
  std::uint32_t draws;
  std::uint32_t lanes;
  std::uint32_t positions;
  std::uint32_t most_levels;
  const std::uint8_t* reference;  ///< by position, or null
  DrawSums out;
};
/// Log p one factor after the other, as the CPU adds them up, minus infinity where one is zero; and how many variables
/// are at the most frequent level.
void launch_sums_in_order(const SumsOfDraws& view);
/// Log p in integers, for which the order does not matter; and how many variables are at level 1.
void launch_sums_in_integers(const SumsOfDraws& view);

}  // namespace poise::cuda
