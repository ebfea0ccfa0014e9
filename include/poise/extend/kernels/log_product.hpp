/// Logarithms of products of many probabilities: a handful of logarithms whatever their number.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include <poise/extend/base/simd.hpp>

namespace poise {

/// Eight products side by side. Every few factors their exponents are put aside as integers, so nothing leaves the
/// range of doubles as long as no factor is below kSmallest; whoever finds that one was adds up logarithms instead.
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

}  // namespace poise
