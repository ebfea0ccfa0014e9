/// Sixteen numbers of 32 bits at a time, for loops in which the precision of floats is enough: twice the lanes of
/// simd.hpp in registers of the same size; and eight floats in memory, taken as doubles and put back.
#pragma once

#include <cstdint>
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

template <class T>
using Lanes16 = Lanes<T>;
using Floats16 = Lanes16<float>;
using Ints16 = Lanes16<std::int32_t>;
using Words16 = Lanes16<std::uint32_t>;

template <class T>
POISE_INLINE Lanes16<T> all16(T a) {
  return {a - typename Lanes16<T>::Half{}, a - typename Lanes16<T>::Half{}};
}

// Comparisons give -1 in the lanes where they hold and 0 elsewhere.
POISE_INLINE Ints16 less16(const Floats16& a, const Floats16& b) { return {a.low < b.low, a.high < b.high}; }
POISE_INLINE Ints16 less_equal16(const Floats16& a, const Floats16& b) { return {a.low <= b.low, a.high <= b.high}; }
POISE_INLINE Floats16 select16(const Ints16& mask, const Floats16& a, const Floats16& b) {
  return {mask.low ? a.low : b.low, mask.high ? a.high : b.high};
}
POISE_INLINE Floats16 min16(const Floats16& a, const Floats16& b) {
  return {a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
}
POISE_INLINE Floats16 max16(const Floats16& a, const Floats16& b) {
  return {a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

/// The same bits as another type.
template <class To, class From>
POISE_INLINE Lanes16<To> bits16(const Lanes16<From>& a) {
  using Half = typename Lanes16<To>::Half;
  return {reinterpret_cast<Half>(a.low), reinterpret_cast<Half>(a.high)};
}
POISE_INLINE Floats16 abs16(const Floats16& a) {
  return bits16<float>(bits16<std::int32_t>(a) & std::int32_t{0x7fffffff});
}

template <class T>
POISE_INLINE Lanes16<T> load16(const T* from) {
  Lanes16<T> v;
  std::memcpy(&v.low, from, sizeof v.low);
  std::memcpy(&v.high, from + 8, sizeof v.high);
  return v;
}
template <class T>
POISE_INLINE void store16(T* to, const Lanes16<T>& v) {
  std::memcpy(to, &v.low, sizeof v.low);
  std::memcpy(to + 8, &v.high, sizeof v.high);
}

/// All bits of eight lanes together.
POISE_INLINE std::uint32_t or_of8(Ints16::Half v) {
  v |= __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
  v |= __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
  return static_cast<std::uint32_t>(v[0] | v[1]);
}

/// e^x as scale * (1 + rest) with scale a power of two, for x from -87 to 87; to within 2e-7 of it. So 1 - e^x can be
/// had without cancellation.
POISE_INLINE void exp_parts16(const Floats16& x, Floats16& scale, Floats16& rest) {
  constexpr float kLog2e = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;  // ten bits of ln 2: n * kLn2High is exact
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer kept in the low bits
  const Floats16 shifted = x * kLog2e + kMagic;
  const Floats16 n = shifted - kMagic;
  const Floats16 r = (x - n * kLn2High) - n * kLn2Low;
  // Taylor polynomial of degree 6 on |r| <= ln(2)/2, in Estrin's order for short latency.
  const Floats16 r2 = r * r;
  const Floats16 c01 = 1.0F + r * (1.0F / 2);
  const Floats16 c23 = 1.0F / 6 + r * (1.0F / 24);
  const Floats16 c45 = 1.0F / 120 + r * (1.0F / 720);
  rest = r * (c01 + r2 * (c23 + r2 * c45));
  // n + 127 in the exponent bits; n is in the low bits of `shifted`.
  scale = bits16<float>((bits16<std::int32_t>(shifted) << 23) + std::int32_t{0x3f800000});
}

}  // namespace poise
