/// Philox 4x32-10 (Salmon and others 2011), the generator of poise/rng.hpp, for device and host: four random words for a
/// step of a chain.
#pragma once

#include <cstdint>

#include "engines/cuda/common/both.hpp"

namespace poise::cuda {

struct Philox {
  std::uint32_t word[4];
};

POISE_BOTH Philox philox(std::uint64_t step, std::uint64_t stream, std::uint64_t seed) {
  Philox at{{static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32),
             static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)}};
  auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  POISE_UNROLL
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = static_cast<std::uint64_t>(0xD2511F53U) * at.word[0];
    const std::uint64_t second = static_cast<std::uint64_t>(0xCD9E8D57U) * at.word[2];
    at = {{static_cast<std::uint32_t>(second >> 32) ^ at.word[1] ^ key0, static_cast<std::uint32_t>(second),
           static_cast<std::uint32_t>(first >> 32) ^ at.word[3] ^ key1, static_cast<std::uint32_t>(first)}};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return at;
}

}  // namespace poise::cuda
