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

/// Differences beyond three standard errors count: among the two dozen cells of a table, chance makes one such in
/// fifteen tables.
inline constexpr double kBeyondChance = 3.0;

[[nodiscard]] Estimate estimate(std::span<const double> values);

/// Difference a - b in units of its standard error; NaN where there is none.
[[nodiscard]] double z_score(const Estimate& a, const Estimate& b);
[[nodiscard]] inline bool differ(const Estimate& a, const Estimate& b) {
  return std::abs(z_score(a, b)) > kBeyondChance;
}

/// "2.55 ± 0.06": the error with two digits, the mean with as many decimals.
[[nodiscard]] std::string text_of(const Estimate& value);

/// Numbers of a stored array; null is NaN.
[[nodiscard]] std::vector<double> numbers(const nlohmann::json& array);
[[nodiscard]] double number(const nlohmann::json& value);
[[nodiscard]] inline Estimate estimate_of(const nlohmann::json& array) { return estimate(numbers(array)); }

}  // namespace poise::reproduction
