/// Eight floats in memory, taken as doubles and put back.
#pragma once

#include <cstring>

#include <poise/extend/base/simd.hpp>

namespace poise {

// NOLINTNEXTLINE(modernize-use-using): the attribute needs the old form
typedef float Floats4 __attribute__((vector_size(16)));

POISE_INLINE Doubles8 load_floats8(const float* from) {
  Floats4 low, high;
  std::memcpy(&low, from, sizeof low);
  std::memcpy(&high, from + 4, sizeof high);
  return {__builtin_convertvector(low, Doubles8::Half), __builtin_convertvector(high, Doubles8::Half)};
}

POISE_INLINE void store_floats8(float* to, const Doubles8& v) {
  const Floats4 low = __builtin_convertvector(v.low, Floats4);
  const Floats4 high = __builtin_convertvector(v.high, Floats4);
  std::memcpy(to, &low, sizeof low);
  std::memcpy(to + 4, &high, sizeof high);
}

}  // namespace poise
