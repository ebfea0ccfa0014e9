/// Code that is compiled for a device and for the host alike (C++17): its macros, and arithmetic and random numbers
/// that are the same on both.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define POISE_BOTH __host__ __device__ __forceinline__
#define POISE_UNROLL _Pragma("unroll")
#else
#define POISE_BOTH inline
#define POISE_UNROLL
#endif

namespace poise::cuda {

// Products and sums of doubles that are never fused. A compiler for devices fuses products with what they are added to
// where it sees both, which is not everywhere: the same numbers would have two sums, and others than on the CPU.

POISE_BOTH double plain_product(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}
POISE_BOTH double plain_sum(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}

/// What plans know of a device.
struct DeviceShape {
  unsigned multiprocessors = 1;
  std::size_t shared_per_block = 0;  ///< bytes, the most that a block may ask for
  std::size_t shared_per_multiprocessor = 0;
};

/// Four random words for a step of a chain: a block of the generator of poise/extend/base/rng.hpp.
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

/// A stream from some offset on.
struct UniformStream {
  std::uint64_t seed;
  std::uint64_t stream;
  std::uint64_t taken;  ///< numbers before that offset
};

/// Number `offset` from there on, as `Rng::uniform` would give it: blocks are made sixteen at a time, and of these
/// first the words 0 and 1 of each, then the words 2 and 3.
POISE_BOTH double uniform_at(const UniformStream& from, std::uint64_t offset) {
  constexpr unsigned kBlocks = 16;
  const std::uint64_t number = from.taken + offset;
  const auto within = static_cast<unsigned>(number % (2 * kBlocks));
  const Philox words = philox(number / (2 * kBlocks) * kBlocks + within % kBlocks, from.stream, from.seed);
  const std::uint64_t high = within < kBlocks ? words.word[0] : words.word[2];
  const std::uint64_t low = within < kBlocks ? words.word[1] : words.word[3];
  return static_cast<double>((high << 32 | low) >> 12) * 0x1p-52;
}

}  // namespace poise::cuda
