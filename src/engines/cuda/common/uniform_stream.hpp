/// Numbers of a random stream (poise/rng.hpp) by their place in it: on a device, and on the host for tests.
#pragma once

#include <cstdint>

#include "engines/cuda/common/philox.cuh"

namespace poise::cuda {

/// A stream from some place on.
struct UniformStream {
  std::uint64_t seed;
  std::uint64_t stream;
  std::uint64_t taken;  ///< numbers before that place
};

/// Number `place` from there on, as `Rng::uniform` would give it: blocks are made sixteen at a time, and of these first
/// the words 0 and 1 of each, then the words 2 and 3.
POISE_BOTH double uniform_at(const UniformStream& from, std::uint64_t place) {
  constexpr unsigned kBlocks = 16;
  const std::uint64_t number = from.taken + place;
  const auto within = static_cast<unsigned>(number % (2 * kBlocks));
  const Philox words = philox(number / (2 * kBlocks) * kBlocks + within % kBlocks, from.stream, from.seed);
  const std::uint64_t high = within < kBlocks ? words.word[0] : words.word[2];
  const std::uint64_t low = within < kBlocks ? words.word[1] : words.word[3];
  return static_cast<double>((high << 32 | low) >> 12) * 0x1p-52;
}

}  // namespace poise::cuda
