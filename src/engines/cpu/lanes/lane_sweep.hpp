/// What a sweep of chains across lanes works on, and the sweeps of each instruction set.
#pragma once

#include <cstdint>

#include "engines/cpu/lanes/lane_model.hpp"

namespace poise {

struct LaneSweep {
  // The model.
  const LaneModel::Variable* variables;
  const LaneModel::Pair* pairs;
  const LaneModel::Term* terms;
  const LaneModel::Other* others;
  const float* tables;
  std::size_t count;  // of variables

  // The tile of chains.
  Value* levels;             // [position][lane]
  std::uint8_t* counts;      // [entry][lane], or nothing
  float* sums;               // of conditional probabilities, [entry][lane], or nothing
  std::size_t lanes;         // 1, 2, 8, or 16, 32, 48 or 64
  std::uint64_t first_word;  // position of the first random word of variable 0

  // Heat, lane by lane; null where no lane is heated. A heated tile has sixteen lanes or more.
  const float* betas;
  const float* log_zeros;
  const float* weights;  // of conditional probabilities in their sums

  // Random numbers. Lanes 2w and 2w + 1 have the halves of word w; otherwise each lane has one to itself.
  const std::uint64_t* first_keys;
  const std::uint64_t* second_keys;
  const std::uint8_t* shifts;  // 0 or 32, where a lane has a word to itself

  /// Bits of lanes for which floats cannot tell; called after the levels of all others were stored.
  void (*settle)(const LaneSweep& sweep, std::size_t position, std::uint64_t unsure);
  void* tile;
};

/// Random words that an update may need: what floats look at, and 32 digits more.
constexpr unsigned kWordsPerUpdate = 2;

void sweep_lanes_scalar(const LaneSweep& sweep);
#if defined(__x86_64__)
void sweep_lanes_avx2(const LaneSweep& sweep);
void sweep_lanes_avx512(const LaneSweep& sweep);
#endif

}  // namespace poise
