/// What variables of two levels do in one step, by the probability that each has: drawing it, listing it, and the
/// probability of all of it.
///
/// A variable has one number, `minor`: the smaller one of the probabilities of changing and of staying, with the sign
/// bit set where it is that of staying. So neither loses its digits beside the other. They are doubles or floats; what
/// is drawn has exactly the probability that stands there either way. `flips` is -1 where a variable changes and 0
/// elsewhere, in integers of the same size.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>
#include <type_traits>

#include <poise/extend/base/lanes16.hpp>
#include <poise/extend/base/rng.hpp>
#include <poise/extend/base/simd.hpp>

namespace poise {

/// The logarithm of a product of many probabilities, by a handful of logarithms whatever their number: eight products
/// side by side. Every few factors their exponents are put aside as integers, so nothing leaves the
/// range of doubles as long as no factor is below kSmallest; where one was, logarithms are added up instead.
class LogProduct {
 public:
  static constexpr double kSmallest = 1e-60;

  /// By factors of at most 1.
  POISE_INLINE void multiply(const Doubles8& factors) {
    product_ = product_ * factors;
    smallest_ = min8(smallest_, factors);
    if (++count_ % kTogether == 0) put_exponents_aside();
  }

  /// Whether `log` is to be trusted.
  [[nodiscard]] POISE_INLINE bool in_range() const { return all_of8(less_equal8(broadcast8(kSmallest), smallest_)); }

  [[nodiscard]] POISE_INLINE double log() {
    put_exponents_aside();
    double product = 1.0;
    std::int64_t exponent = 0;
    for (unsigned lane = 0; lane < 8; ++lane) {
      product *= product_[lane];
      exponent += exponent_[lane];
    }
    return std::log(product) + std::numbers::ln2 * static_cast<double>(exponent);
  }

 private:
  static constexpr unsigned kTogether = 4;  // factors of kSmallest that make no less than 1e-240

  POISE_INLINE void put_exponents_aside() {
    const Ints8 bits = bits8<std::int64_t>(product_);
    exponent_ += (bits >> 52) - std::int64_t{1023};
    product_ = bits8<double>((bits & std::int64_t{0x000fffffffffffff}) | std::int64_t{0x3ff0000000000000});
  }

  Doubles8 product_ = broadcast8(1.0);
  Doubles8 smallest_ = broadcast8(1.0);
  Ints8 exponent_ = {};
  unsigned count_ = 0;
};

/// As many variables share eight random words; all arrays are padded to a multiple of it, with variables that stay.
inline constexpr std::size_t kFlipsTogether = 32;

template <class Real>
using FlipMask = std::conditional_t<std::is_same_v<Real, float>, std::int32_t, std::int64_t>;

POISE_INLINE Doubles8 load_reals8(const double* from) { return load8(from); }
POISE_INLINE Doubles8 load_reals8(const float* from) { return load_floats8(from); }
POISE_INLINE void store_reals8(double* to, const Doubles8& v) { store8(to, v); }
POISE_INLINE void store_reals8(float* to, const Doubles8& v) { store_floats8(to, v); }

/// Numbers as they are kept, from the log ratios of changes (-inf: never) and both probabilities.
POISE_INLINE Doubles8 minor_of(const Doubles8& u, const Doubles8& change, const Doubles8& stay) {
  const Ints8 stays_less = less8(stay, change);
  const Ints8 possible = less8(broadcast8(-1e300), u);
  const Ints8 value =
      bits8<std::int64_t>(select8(stays_less, stay, change)) | (stays_less & std::numeric_limits<std::int64_t>::min());
  return bits8<double>(value & possible);
}

/// Sixteen random bits decide about a variable, unless they are just those that its probability begins with; then as
/// many follow as a double has.
class FlipDraws {
 public:
  template <class Real>
  static void draw(std::span<const Real> minor, const std::uint64_t* words, FlipMask<Real>* flips, Rng& rng) {
    const bool decided = hot([from = minor.data(), size = minor.size(), words, flips] {
      std::int64_t ties = 0;
      for (std::size_t k = 0; k < size; k += kFlipsTogether) ties |= draw_block(from + k, words + k / 4, flips + k);
      return ties == 0;
    });
    if (decided) return;
    for (std::size_t k = 0; k < minor.size(); ++k) {
      const auto digits = static_cast<double>(digits_of<Real>(words + k / kFlipsTogether * 8, k % kFlipsTogether));
      const double scaled = std::abs(static_cast<double>(minor[k])) * 0x1p16;
      if (!(digits < scaled && scaled < digits + 1.0)) continue;
      const bool is_minor = rng.uniform() < scaled - digits;
      flips[k] = is_minor != std::signbit(minor[k]) ? -1 : 0;
    }
  }

 private:
  static constexpr int kDigits = 16;

  /// The bits that belong to variable k of a block.
  template <class Real>
  [[nodiscard]] static std::uint64_t digits_of(const std::uint64_t* words, std::size_t k) {
    if constexpr (std::is_same_v<Real, float>) {
      return words[k % 16 / 2] >> (32 * (k % 2) + kDigits * (k / 16)) & 0xffff;
    } else {
      return words[k % 8] >> (kDigits * (k / 8)) & 0xffff;
    }
  }

  // Each gives a number that is not 0 where the digits do not decide.

  POISE_INLINE static std::int64_t draw_block(const double* minor, const std::uint64_t* words, std::int64_t* flips) {
    const Words8 all = load8(words);
    Ints8 ties = {};
    for (unsigned part = 0; part < 4; ++part) {
      const Words8 digits = all >> static_cast<int>(kDigits * part) & std::uint64_t{0xffff};
      const Doubles8 value = load8(minor + 8 * part);
      const Doubles8 scaled = abs8(value) * 0x1p16;
      const Doubles8 low = bits8<double>(digits | std::uint64_t{0x4330000000000000}) - 0x1p52;
      const Ints8 sure = less_equal8(low + 1.0, scaled);
      store8(flips + 8 * part, sure ^ (bits8<std::int64_t>(value) >> 63));
      ties = ties | (less8(low, scaled) ^ sure);
    }
    return all_of8(ties ^ std::int64_t{-1}) ? 0 : 1;
  }

  POISE_INLINE static std::int64_t draw_block(const float* minor, const std::uint64_t* words, std::int32_t* flips) {
    Words16 all;
    std::memcpy(&all.low, words, sizeof all.low);
    std::memcpy(&all.high, words + 4, sizeof all.high);
    Ints16 ties = {};
    for (unsigned part = 0; part < 2; ++part) {
      const Words16 digits = part == 0 ? all & std::uint32_t{0xffff} : all >> kDigits;
      const Floats16 value = load16(minor + 16 * part);
      const Floats16 scaled = abs16(value) * 0x1p16F;
      const Floats16 low = bits16<float>(digits | std::uint32_t{0x4b000000}) - 0x1p23F;
      const Ints16 sure = less_equal16(low + 1.0F, scaled);
      store16(flips + 16 * part, sure ^ (bits16<std::int32_t>(value) >> 31));
      ties = ties | (less16(low, scaled) ^ sure);
    }
    return or_of8(ties.low | ties.high);
  }
};

/// Which of the variables of a block change, a bit for each.
POISE_INLINE std::uint32_t bits_of_flips(const std::int64_t* flips) {
  Ints8 lanes = {};
  for (int part = 0; part < 4; ++part) {
    constexpr Ints8 kBits = {{1, 2, 4, 8}, {16, 32, 64, 128}};
    lanes = lanes | (load8(flips + 8 * part) & (kBits << 8 * part));
  }
  return static_cast<std::uint32_t>(sum4(lanes.low | lanes.high));
}
POISE_INLINE std::uint32_t bits_of_flips(const std::int32_t* flips) {
  constexpr Words16 kBits = {{0x1, 0x2, 0x4, 0x8, 0x10, 0x20, 0x40, 0x80},
                             {0x100, 0x200, 0x400, 0x800, 0x1000, 0x2000, 0x4000, 0x8000}};
  const Words16 first = bits16<std::uint32_t>(load16(flips)) & kBits;
  const Words16 second = bits16<std::uint32_t>(load16(flips + 16)) & (kBits << 16);
  const Ints16 all = bits16<std::int32_t>(first | second);
  return or_of8(all.low | all.high);
}

/// Probabilities of what eight variables did.
POISE_INLINE Doubles8 probs_of_flips(const double* minor, const std::int64_t* flips) {
  const Doubles8 value = load8(minor);
  const Ints8 is_minor = (bits8<std::int64_t>(value) >> 63) ^ load8(flips);
  const Doubles8 less = abs8(value);
  return select8(is_minor, less, 1.0 - less);
}
/// The same with the sign turned where it is the other probability: 1 is added to what is negative then.
POISE_INLINE Doubles8 probs_of_flips(const float* minor, const std::int32_t* flips) {
  Ints16::Half value, changes;
  std::memcpy(&value, minor, sizeof value);
  std::memcpy(&changes, flips, sizeof changes);
  const auto turned = reinterpret_cast<Floats16::Half>(value ^ (~changes & std::numeric_limits<std::int32_t>::min()));
  const Doubles8 signed_probs = {
      __builtin_convertvector(__builtin_shufflevector(turned, turned, 0, 1, 2, 3), Doubles8::Half),
      __builtin_convertvector(__builtin_shufflevector(turned, turned, 4, 5, 6, 7), Doubles8::Half)};
  constexpr std::int64_t kOne = 0x3ff0000000000000;
  return signed_probs + bits8<double>((bits8<std::int64_t>(signed_probs) >> 63) & kOne);
}

/// Log of the probability of what all variables did.
template <class Real>
double log_prob_of_flips(std::span<const Real> minor, const FlipMask<Real>* flips) {
  double log = 0.0;
  const bool in_range = hot([&log, from = minor.data(), size = minor.size(), flips] {
    LogProduct even, odd;  // two, so that one need not wait for the other
    for (std::size_t k = 0; k < size; k += 16) {
      even.multiply(probs_of_flips(from + k, flips + k));
      odd.multiply(probs_of_flips(from + k + 8, flips + k + 8));
    }
    log = even.log() + odd.log();
    return even.in_range() && odd.in_range();
  });
  if (in_range) return log;
  log = 0.0;
  for (std::size_t k = 0; k < minor.size(); k += 8) {
    const Doubles8 probs = probs_of_flips(minor.data() + k, flips + k);
    for (unsigned lane = 0; lane < 8; ++lane) log += std::log(probs[lane]);
  }
  return log;
}

/// Sum of the logarithms of probabilities; the size is a multiple of eight.
inline double sum_of_logs(std::span<const double> probs) {
  double log = 0.0;
  const bool in_range = hot([&log, data = probs.data(), size = probs.size()] {
    LogProduct all;
    for (std::size_t k = 0; k < size; k += 8) all.multiply(load8(data + k));
    log = all.log();
    return all.in_range();
  });
  if (in_range) return log;
  log = 0.0;
  for (const double prob : probs) log += std::log(prob);
  return log;
}

}  // namespace poise
