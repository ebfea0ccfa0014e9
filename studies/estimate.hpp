/// Means with their standard errors, and whether two of them differ by more than chance.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace poise::reproduction {

/// A mean over independent chains.
struct Estimate {
  double mean = std::numeric_limits<double>::quiet_NaN();
  double sd = 0.0;        ///< over the chains
  std::size_t count = 0;  ///< of chains

  [[nodiscard]] double error() const { return count > 0 ? sd / std::sqrt(static_cast<double>(count)) : 0.0; }
};

/// Differences that chance makes less often than this count as more than chance: three standard errors where there are
/// many chains. Among the two dozen cells of a table, chance then makes one such in fifteen tables.
inline constexpr double kChance = 0.0027;

[[nodiscard]] Estimate estimate(std::span<const double> values);

/// How often chance alone would make a difference as large (Welch's t-test, two-sided); NaN where nothing varies.
[[nodiscard]] double p_value(const Estimate& a, const Estimate& b);
[[nodiscard]] inline bool differ(const Estimate& a, const Estimate& b) { return p_value(a, b) < kChance; }
/// Whether `a` is larger by more than chance.
[[nodiscard]] inline bool exceeds(const Estimate& a, const Estimate& b) { return a.mean > b.mean && differ(a, b); }

/// "2.55 ± 0.06": the error with two digits, the mean with as many decimals.
[[nodiscard]] std::string text_of(const Estimate& value);

/// A whole number as such, any other with four digits.
[[nodiscard]] std::string plain(double value);

/// Numbers of a stored array; null is NaN.
[[nodiscard]] std::vector<double> numbers(const nlohmann::json& array);
[[nodiscard]] double number(const nlohmann::json& value);
[[nodiscard]] inline Estimate estimate_of(const nlohmann::json& array) { return estimate(numbers(array)); }

}  // namespace poise::reproduction
