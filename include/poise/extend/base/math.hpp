/// exp and log over eight lanes, the same bits on every processor; softplus of one number.
#pragma once

#include <cmath>

#include <poise/extend/base/simd.hpp>

namespace poise {

/// log(1 + e^x), without overflow.
[[nodiscard]] inline double softplus(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

/// e^x to within 2 units in the last place. Below -708 the result is 0; above 709 it stays at e^709, so that a sum of
/// weights that would overflow shows as a huge number rather than as NaN.
POISE_INLINE Doubles8 exp8(const Doubles8& x) {
  constexpr double kLog2e = 1.4426950408889634074;
  constexpr double kLn2High = 6.93147180369123816490e-01;  // the first 32 bits of ln 2: n * kLn2High is exact
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer kept in the low bits
  const Doubles8 bounded = min8(broadcast8(709.0), max8(broadcast8(-708.0), x));  // in this order NaN stays NaN
  const Doubles8 shifted = bounded * kLog2e + kMagic;
  const Doubles8 n = shifted - kMagic;
  const Doubles8 r = (bounded - n * kLn2High) - n * kLn2Low;

  // Taylor polynomial of degree 13 on |r| <= ln(2)/2 (remainder below 5e-18), in Estrin's order for short latency.
  const Doubles8 r2 = r * r;
  const Doubles8 r4 = r2 * r2;
  const Doubles8 c01 = 1.0 + r;
  const Doubles8 c23 = 1.0 / 2 + r * (1.0 / 6);
  const Doubles8 c45 = 1.0 / 24 + r * (1.0 / 120);
  const Doubles8 c67 = 1.0 / 720 + r * (1.0 / 5040);
  const Doubles8 c89 = 1.0 / 40320 + r * (1.0 / 362880);
  const Doubles8 cab = 1.0 / 3628800 + r * (1.0 / 39916800);
  const Doubles8 ccd = 1.0 / 479001600 + r * (1.0 / 6227020800);
  const Doubles8 low = c01 + r2 * c23;
  const Doubles8 middle = c45 + r2 * c67;
  const Doubles8 high = (c89 + r2 * cab) + r4 * ccd;
  const Doubles8 p = low + r4 * (middle + r4 * high);

  // Multiply by 2^n through the exponent bits; n is in the low bits of `shifted`.
  const Ints8 scaled = bits8<std::int64_t>(p) + (bits8<std::int64_t>(shifted) << 52);
  return select8(less8(x, broadcast8(-708.0)), Doubles8{}, bits8<double>(scaled));
}

/// log x of normal positive numbers, to within 2 units in the last place of it, or of 1. x = 2^n m with m between
/// sqrt(1/2) and sqrt(2), and log m = 2 artanh s = 2 (s + s^3/3 + s^5/5 + ...) with s = (m - 1) / (m + 1), |s| < 0.172;
/// what is left out is below 2e-18 of the first term. For 0 the result is some finite number.
POISE_INLINE Doubles8 log8(const Doubles8& x) {
  constexpr double kLn2High = 6.93147180369123816490e-01;
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  constexpr std::uint64_t kFraction = 0x000fffffffffffff;
  constexpr std::uint64_t kOne = 0x3ff0000000000000;
  constexpr std::uint64_t kTwo52 = 0x4330000000000000;  // 2^52, whose low bits are an integer
  const Words8 bits = bits8<std::uint64_t>(x);
  const Doubles8 m = bits8<double>((bits & kFraction) | kOne);
  const Doubles8 n = bits8<double>((bits >> 52) | kTwo52) - (4503599627370496.0 + 1023.0);
  const Ints8 small = less8(m, broadcast8(1.4142135623730951));
  const Doubles8 mantissa = select8(small, m, m * 0.5);
  const Doubles8 exponent = select8(small, n, n + 1.0);
  const Doubles8 s = (mantissa - 1.0) / (mantissa + 1.0);
  const Doubles8 t = s * s;
  const Doubles8 t2 = t * t;
  const Doubles8 t4 = t2 * t2;
  const Doubles8 low = (2.0 / 3 + t * (2.0 / 5)) + t2 * (2.0 / 7 + t * (2.0 / 9));
  const Doubles8 high = (2.0 / 11 + t * (2.0 / 13)) + t2 * (2.0 / 15 + t * (2.0 / 17));
  const Doubles8 last = 2.0 / 19 + t * (2.0 / 21);
  const Doubles8 series = s * t * (low + t4 * (high + t4 * last));
  return exponent * kLn2High + ((s + s) + (series + exponent * kLn2Low));
}

}  // namespace poise
