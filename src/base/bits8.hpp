/// Eight bits at a time: as eight bytes, and as rows and columns of a square.
#pragma once

#include <cstdint>

#include <poise/extend/base/hot.hpp>

namespace poise {

/// Rows and columns of a matrix of 8 x 8 bits exchanged (Warren, Hacker's Delight).
POISE_INLINE std::uint64_t transpose8(std::uint64_t x) {
  std::uint64_t t = (x ^ (x >> 7)) & 0x00aa00aa00aa00aa;
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000cccc0000cccc;
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000f0f0f0f0;
  return x ^ t ^ (t << 28);
}

/// Eight bits as eight bytes, 0 or 1, the lowest first.
POISE_INLINE std::uint64_t spread8(std::uint64_t bits) {
  const std::uint64_t copies = (bits * 0x0101010101010101) & 0x8040201008040201;
  return ((copies + 0x7f7f7f7f7f7f7f7f) | copies) >> 7 & 0x0101010101010101;
}

/// The other way: byte k times 2^(56 - 7 k) is bit k of the highest byte.
POISE_INLINE std::uint64_t pack8(std::uint64_t bytes) { return bytes * 0x0102040810204080 >> 56; }

}  // namespace poise
