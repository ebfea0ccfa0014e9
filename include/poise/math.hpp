/// exp over eight lanes, the same bits on every machine.
#pragma once

#include <poise/simd.hpp>

namespace poise {

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

}  // namespace poise
