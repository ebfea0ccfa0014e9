/// Means with their standard errors, whether two of them differ by more than chance, and in how many cases a claim
/// holds.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "studies/reproduce.hpp"

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

/// A claim holds if it is so beyond chance in every case; it does not if it is so in none and the opposite is so beyond
/// chance in some; all else is open.
class Tally {
 public:
  void add(const std::string& name, bool so, bool opposite) {
    ++cases_;
    if (so) so_.push_back(name);
    opposite_ += opposite ? 1 : 0;
  }

  [[nodiscard]] Verdict::Holds holds() const {
    if (so_.size() == cases_) return Verdict::Holds::yes;
    return so_.empty() && opposite_ > 0 ? Verdict::Holds::no : Verdict::Holds::open;
  }
  /// For what is said of every case: one clear exception is enough to refute it.
  [[nodiscard]] Verdict::Holds holds_throughout() const {
    if (so_.size() == cases_) return Verdict::Holds::yes;
    return opposite_ > 0 ? Verdict::Holds::no : Verdict::Holds::open;
  }
  /// "case 1, case 3", or "none".
  [[nodiscard]] std::string text() const {
    return so_.empty() ? std::string("none") : fmt::format("{}", fmt::join(so_, ", "));
  }

 private:
  std::vector<std::string> so_;
  std::size_t opposite_ = 0;
  std::size_t cases_ = 0;
};

}  // namespace poise::reproduction
