/// A unit of an RBM given the other layer: on or off by sixteen random bits where these can tell, and by the exact rule
/// of kernel/rbm_gibbs.hpp elsewhere; on a device, and on the host for tests.
///
/// Sums are those of weights rounded to sixteen bits, two signed bytes each, which tensor cores multiply and add
/// without rounding. So a sum does not depend on its order, and what it is off by is what rounding the weights did.
///
/// The tensor cores' fragments (PTX ISA, mma.m16n8k32) suit the random words of the CPU: the thread that has the
/// sums of units 2t, 2t + 1 of each eight of a slice has all units of two random blocks of the slice.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "engines/common/host_device.hpp"

namespace poise::cuda {

/// Units of a slice, of which each has a bit of a word.
inline constexpr unsigned kGibbsSlice = 32;

/// What a thread multiplies with: weights of a unit and eight inputs, the higher and the lower byte of each.
struct alignas(16) GibbsFragment {
  std::uint32_t high[2];
  std::uint32_t low[2];
};

/// What the sum of a unit means.
struct alignas(16) GibbsUnit {
  std::int32_t start;  ///< the bias
  float scale;         ///< -log2(e) times the unit of weights
  float above;         ///< e^-a is at most this times its estimate,
  float below;         ///< and at least this times it
};

/// e^-a has a relative error of at most this besides that of the sum: 5e-6 from an exponent of up to 40 in floats with
/// three roundings, 3e-7 from the device's power of two, and some 1e-7 from products after it.
inline constexpr double kGibbsEstimate = 2e-5;

/// Inputs of a thread, 0 or 1 in each byte: of the 32 inputs in `word` those at 2 t + half and every eighth after it.
POISE_BOTH std::uint32_t gibbs_inputs(std::uint32_t word, unsigned t, unsigned half) {
  return word >> (2 * t + half) & 0x01010101U;
}

/// 2^x, for x from -40 to 40.
POISE_BOTH float gibbs_power_of_two(float x) {
#ifdef __CUDA_ARCH__
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
#else
  return std::exp2(x);
#endif
}

struct GibbsDecision {
  bool on;
  bool open;  ///< sixteen bits do not tell
};

/// u, in units of 2^-16, times 1 + e^-a is compared with 2^16: floats round this by less than an eightieth.
POISE_BOTH GibbsDecision decide(const GibbsUnit& unit, std::int32_t sum, std::uint32_t first_bits) {
  constexpr float kSlack = 1.0F / 32, kFull = 65536.0F, kLargestExponent = 40.0F;
  const float x = static_cast<float>(unit.start + sum) * unit.scale;
  const float e = gibbs_power_of_two(fminf(fmaxf(x, -kLargestExponent), kLargestExponent));
  const auto u = static_cast<float>(first_bits);
  const bool on = (u + (1.0F + kSlack)) * (1.0F + e * unit.above) < kFull;
  const bool off = (u - kSlack) * (1.0F + e * unit.below) > kFull;
  return {on, !on && !off};
}

/// Where the sixteen random bits of units are: words of a chain's stream as Rng::fill numbers them.
struct GibbsOffset {
  std::uint64_t
      block;      ///< of Philox, for the first two units of a slice; one further for each two of the first sixteen
  unsigned word;  ///< of the block: 0 or 2
};
/// `first_block` is that of the step, `slice` counts those of hidden units first.
POISE_BOTH GibbsOffset gibbs_offset(std::uint64_t first_block, unsigned slice) {
  constexpr unsigned kWords = kGibbsSlice / 4, kBatch = 32, kBlocks = 16;  // words of 64 bits
  const unsigned first = slice * kWords;
  return {first_block + first / kBatch * kBlocks + first % kBlocks, first % kBatch / kBlocks * 2};
}
/// The sixteen bits of a unit of a slice, from its block.
POISE_BOTH std::uint32_t gibbs_bits(const Philox& block, unsigned word, unsigned unit) {
  return block.word[word + unit % 2] >> 16 * (unit / 16) & 0xffffU;
}
/// Which block of the slice has them.
POISE_BOTH unsigned gibbs_block(unsigned unit) { return unit % 16 / 2; }

/// Bits of the units of a slice that are on, and of those that are open.
struct GibbsDrawn {
  std::uint32_t on;
  std::uint32_t open;
};

/// The units of a thread: 2 t and 2 t + 1 of each eight of a slice. `blocks` are t and t + 4 of the slice.
POISE_BOTH GibbsDrawn draw_units(const GibbsUnit (&units)[8], const std::int32_t (&sums)[8], unsigned t,
                                 const Philox (&blocks)[2], unsigned word) {
  GibbsDrawn drawn{0, 0};
  POISE_UNROLL
  for (unsigned k = 0; k < 8; ++k) {
    const unsigned unit = k / 2 * 8 + 2 * t + k % 2;
    // The parity of 2 t + k is that of k, and k says which half of the slice it is: neither depends on the thread.
    const std::uint32_t pair = word == 0 ? blocks[k / 2 % 2].word[k % 2] : blocks[k / 2 % 2].word[2 + k % 2];
    const GibbsDecision decision = decide(units[k], sums[k], pair >> 16 * (k / 4) & 0xffffU);
    drawn.on |= static_cast<std::uint32_t>(decision.on) << unit;
    drawn.open |= static_cast<std::uint32_t>(decision.open) << unit;
  }
  return drawn;
}

// The exact rule, operation by operation that of the CPU, where nothing is fused.

/// a + b c
POISE_BOTH double plain_step(double a, double b, double c) { return plain_sum(a, plain_product(b, c)); }

POISE_BOTH std::int64_t bits_of(double value) {
  std::int64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// exp8 of math.hpp.
POISE_BOTH double plain_exp(double x) {
  constexpr double kLog2e = 1.4426950408889634074;
  constexpr double kLn2High = 6.93147180369123816490e-01;
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  constexpr double kMagic = 6755399441055744.0;
  if (x < -708.0) return 0.0;
  const double bounded = fmin(709.0, x);
  const double shifted = plain_step(kMagic, bounded, kLog2e);
  const double n = plain_sum(shifted, -kMagic);
  const double r = plain_step(plain_step(bounded, -n, kLn2High), -n, kLn2Low);
  const double r2 = plain_product(r, r);
  const double r4 = plain_product(r2, r2);
  const double c01 = plain_sum(1.0, r);
  const double c23 = plain_step(1.0 / 2, r, 1.0 / 6);
  const double c45 = plain_step(1.0 / 24, r, 1.0 / 120);
  const double c67 = plain_step(1.0 / 720, r, 1.0 / 5040);
  const double c89 = plain_step(1.0 / 40320, r, 1.0 / 362880);
  const double cab = plain_step(1.0 / 3628800, r, 1.0 / 39916800);
  const double ccd = plain_step(1.0 / 479001600, r, 1.0 / 6227020800);
  const double low = plain_step(c01, r2, c23);
  const double middle = plain_step(c45, r2, c67);
  const double high = plain_step(plain_step(c89, r2, cab), r4, ccd);
  const double p = plain_step(low, r4, plain_step(middle, r4, high));
  const std::int64_t scaled =
      bits_of(p) + static_cast<std::int64_t>(static_cast<std::uint64_t>(bits_of(shifted)) << 52);
  double out;
  memcpy(&out, &scaled, sizeof out);
  return out;
}

/// A weight as an integer, as Rbm has it; `in_one` is how many of its units are 1, a power of two.
POISE_BOTH std::int64_t whole_units(float weight, double in_one) {
  const double exact = static_cast<double>(weight) * in_one;
  return static_cast<std::int64_t>(plain_sum(exact, copysign(0.5, exact)));
}

/// The exact activation of a unit of a replica: `unit` is beta times that of the sum.
POISE_BOTH double heated_activation(double unit, std::int64_t sum, double offset) {
  return plain_sum(plain_product(unit, static_cast<double>(sum)), offset);
}

/// The random stream of a replica, as ladders on the CPU number those of their rungs. `first` is that of the first
/// ladder's cold rung.
POISE_BOTH std::uint64_t replica_stream(std::uint64_t first, std::uint32_t ladder, std::uint32_t rungs_above) {
  return first + ladder + (static_cast<std::uint64_t>(rungs_above) << 32);
}

/// A unit that was left open.
struct GibbsOpen {
  std::uint64_t offset;      ///< of its sixteen bits in the stream, in sixteens
  std::uint64_t stream;      ///< that of further digits of the chain
  std::uint32_t first_bits;  ///< the sixteen
};
/// `activation` is the exact sum.
POISE_BOTH bool is_on(const GibbsOpen& open, std::uint64_t seed, double activation) {
  const Philox block = philox(open.offset, open.stream, seed);
  const std::uint64_t further = (static_cast<std::uint64_t>(block.word[0]) << 32 | block.word[1]) >> 28;
  const double u = static_cast<double>(static_cast<std::uint64_t>(open.first_bits) << 36 | further) * 0x1p-52;
  return plain_product(u, plain_sum(1.0, plain_exp(-activation))) < 1.0;
}

// How weights are rounded to sixteen bits, and what their sums are off by: on the host where weights are given, on
// a device where they are being learned.

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
