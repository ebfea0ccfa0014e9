/// The relaxation law of variables of two levels in floats (kernel/factorised_law.hpp has the formulas), sixteen at a
/// time.
///
/// Where log ratios are first-order ones, off by far more than a float is, nothing is gained by more digits; and any
/// law will do that a state determines. What is not lost to rounding is the balance between small numbers: 1 - e^(-tau
/// s) is taken without cancellation, and the smaller of two probabilities is the one that is kept.
#pragma once

#include <cmath>
#include <limits>
#include <span>

#include <poise/extend/learning/balancing_function.hpp>
#include <poise/extend/kernels/flips.hpp>
#include <poise/extend/base/lanes16.hpp>

namespace poise {

/// The size beyond which a log ratio counts as this, and beyond which tau s does: e^-64 times any step length of use is
/// a normal float. Numbers that are not normal take a processor a hundred times as long.
inline constexpr float kSteepestFloat = 64.0F;

/// What the loops need of the function, in registers.
struct FloatRelaxation {
  using Kind = BalancingFunction::Kind;

  explicit FloatRelaxation(const BalancingFunction& function)
      : length(static_cast<float>(std::exp(function.level()))),
        still(static_cast<float>(std::exp(-std::exp(function.level())))),
        moved(static_cast<float>(-std::expm1(-std::exp(function.level())))),
        table(function.table()) {}

  float length;        // e^level
  float still, moved;  // e^-length, 1 - e^-length
  const BalanceTable* table;

  /// e^phi at |u| = size.
  [[nodiscard]] POISE_INLINE Floats16::Half table_factor(const Floats16::Half& size) const {
    const Doubles8 wide = {__builtin_convertvector(__builtin_shufflevector(size, size, 0, 1, 2, 3), Doubles8::Half),
                           __builtin_convertvector(__builtin_shufflevector(size, size, 4, 5, 6, 7), Doubles8::Half)};
    Doubles8 exponent, factor;
    table->phi_parts(wide, exponent, factor);
    if (!all_of8(less_equal8(wide, broadcast8(BalanceTable::kRange)))) factor = factor * exp8(exponent);
    const Floats4 low = __builtin_convertvector(factor.low, Floats4);
    const Floats4 high = __builtin_convertvector(factor.high, Floats4);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
  }

  /// `minor` of sixteen variables by their log ratios.
  template <Kind kind>
  [[nodiscard]] POISE_INLINE Floats16 law(const Floats16& u) const {
    const Floats16 size = min16(all16(kSteepestFloat), abs16(u));
    Floats16 scale, rest;
    exp_parts16(size * -0.5F, scale, rest);
    const Floats16 root = scale + scale * rest;
    const Floats16 small = root * root;
    const Floats16 sum = 1.0F + small;
    Floats16 likely, gone, left;  // 1 / (1 + e^-|u|), 1 - e^(-tau s), e^(-tau s)
    if constexpr (kind == Kind::barker) {
      likely = 1.0F / sum;
      gone = all16(moved);
      left = all16(still);
    } else {
      Floats16 rate;
      if constexpr (kind == Kind::min) {
        likely = 1.0F / sum;
        rate = length * sum;
      } else {
        const Floats16& denominator = kind == Kind::max ? small : root;
        const Floats16 inverse = 1.0F / (denominator * sum);
        likely = denominator * inverse;
        rate = length * (sum * sum * inverse);
      }
      if constexpr (kind == Kind::table) rate = rate * Floats16{table_factor(size.low), table_factor(size.high)};
      exp_parts16(-1.0F * min16(all16(kSteepestFloat), rate), scale, rest);
      rest = scale * rest;
      left = scale + rest;
      gone = (1.0F - scale) - rest;
    }
    const Floats16 stay = small + left;  // over `likely`, where the change is to the likelier level
    const Ints16 up = less16(Floats16{}, u);
    const Ints16 possible = less16(all16(-1e30F), u);
    const Ints16 stays_less = less16(stay, gone) & up;
    const Floats16 value = likely * select16(up, min16(stay, gone), small * gone);
    return bits16<float>((bits16<std::int32_t>(value) | (stays_less & std::numeric_limits<std::int32_t>::min())) &
                         possible);
  }

  template <Kind kind>
  [[nodiscard]] bool fill(std::span<const float> log_ratios, float* minor) const {
    return hot([own = *this, from = log_ratios.data(), size = log_ratios.size(), minor] {
      Ints16 legal = all16(std::int32_t{-1});
      for (std::size_t k = 0; k < size; k += 16) {
        const Floats16 u = load16(from + k);
        legal = legal & less16(u, all16(std::numeric_limits<float>::infinity()));
        store16(minor + k, own.law<kind>(u));
      }
      return or_of8(~(legal.low & legal.high)) == 0;
    });
  }
};

/// The law of all variables; false where a log ratio is illegal.
[[nodiscard]] inline bool relax_floats(std::span<const float> log_ratios, const BalancingFunction& function,
                                       float* minor) {
  using Kind = BalancingFunction::Kind;
  const FloatRelaxation relaxation(function);
  switch (function.kind()) {
    case Kind::sqrt: return relaxation.fill<Kind::sqrt>(log_ratios, minor);
    case Kind::barker: return relaxation.fill<Kind::barker>(log_ratios, minor);
    case Kind::min: return relaxation.fill<Kind::min>(log_ratios, minor);
    case Kind::max: return relaxation.fill<Kind::max>(log_ratios, minor);
    case Kind::table: return relaxation.fill<Kind::table>(log_ratios, minor);
  }
  return false;
}

}  // namespace poise
