/// How weights of an RBM are rounded to sixteen bits, and what their sums are off by: on the host where they are given,
/// on a device where they are being learned.
#pragma once

#include "engines/cuda/rbm/rbm_gibbs_draw.hpp"

namespace poise::cuda {

/// What a weight of 1 in a sum is worth. Weights have two bytes with signs, so they are at most 127 * 256 + 127; the
/// whole sum, `total` of sizes of weights and the bias, has 30 bits.
POISE_BOTH double gibbs_step(double largest, double total) {
  constexpr double kMost = 32639.0, kLeast = 1e-38;
  return fmax(fmax(largest, kLeast) / kMost, total * 0x1p-30);
}

/// The sum over some of the weights is too small by the sum of some of the errors: at most by that of the positive
/// ones, and too large at most by that of the negative ones.
struct GibbsErrors {
  double low = 0.0;  ///< too large
  double high = 0.0;
};

POISE_BOTH std::int32_t round_weight(double value, double step, GibbsErrors& errors) {
  const double rounded = rint(value / step);
  const double error = value - step * rounded;
  if (error < 0.0) {
    errors.low -= error;
  } else {
    errors.high += error;
  }
  return static_cast<std::int32_t>(rounded);
}

/// A unit whose weights were rounded.
struct GibbsRounded {
  std::int32_t start;  ///< the bias
  double step;         ///< the unit of weights
  GibbsErrors errors;
};

/// At an inverse temperature activations are times beta, plus an offset.
struct GibbsHeat {
  double beta = 1.0;
  double offset = 0.0;
};

/// e^-(beta a + offset): beta goes into the scale of the exponent, the offset into what the estimate is multiplied by.
/// As estimates end at 2^-40 and 2^40, what they are multiplied by ends where these are still certain of anything that
/// sixteen bits can tell. `doubt` leaves more open than need be: activations may be off by this much.
POISE_BOTH GibbsUnit make_unit(const GibbsRounded& unit, const GibbsHeat& heat, double doubt) {
  constexpr double kLog2e = 1.4426950408889634074, kLeast = 0x1p-24, kMost = 0x1p24;
  const double above = exp(heat.beta * unit.errors.low + doubt - heat.offset) * (1.0 + kGibbsEstimate);
  const double below = exp(-heat.beta * unit.errors.high - doubt - heat.offset) * (1.0 - kGibbsEstimate);
  return {unit.start, static_cast<float>(-heat.beta * unit.step * kLog2e),
          static_cast<float>(fmax(fmin(above, 1e30), kLeast)), static_cast<float>(fmin(below, kMost))};
}

/// Puts a weight where a thread multiplies with it: input 2 t + half + 8 byte of a word.
POISE_BOTH void put_weight(GibbsFragment& to, unsigned half, unsigned byte, std::int32_t weight) {
  const std::int32_t low = ((weight + 128) & 255) - 128;
  const std::int32_t high = (weight - low) / 256;
  to.high[half] |= (static_cast<std::uint32_t>(high) & 255U) << 8 * byte;
  to.low[half] |= (static_cast<std::uint32_t>(low) & 255U) << 8 * byte;
}

}  // namespace poise::cuda
