/// Text of reports: aligned columns, numbers with the digits that mean something, wrapped lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/diagnose.hpp>

namespace poise::text {

/// `significant` digits without an exponent where that stays short; "-" for NaN.
[[nodiscard]] std::string number(double value, int significant = 4);

/// A mean with as many decimals as its Monte Carlo error leaves meaning to: two digits of the error.
[[nodiscard]] std::string mean(double value, double error);

/// A field of a CSV file, in quotes where it needs them.
[[nodiscard]] std::string csv_field(const std::string& field);

/// A probability from its natural logarithm, also where it is too small for a double: 0.0707, 1.234e-412.
[[nodiscard]] std::string probability(double log_probability);

/// A count of draws or an effective sample size: no decimals from 10 on, and none of whole numbers.
[[nodiscard]] std::string count(double value);

/// Four decimals, for 1.0104 is not 1.01.
[[nodiscard]] std::string r_hat(double value);

/// 11.6 M, 850 k.
[[nodiscard]] std::string rate(double value);

/// 512 bytes, 4.2 KiB, 1.3 GiB; "more memory than there is" for infinity.
[[nodiscard]] std::string bytes(double value);

/// 0.42 s, 3 min 12 s, 2 h 05 min.
[[nodiscard]] std::string duration(double seconds);

/// "1 chain", "4 chains".
[[nodiscard]] std::string plural(std::uint64_t number, std::string_view noun);

/// What follows the word "every": "step", "4 steps".
[[nodiscard]] std::string every(std::uint64_t number, std::string_view noun);

/// Breaks lines at blanks; the first line starts with `first`, the others with as many blanks.
[[nodiscard]] std::string wrap(std::string_view words, std::string_view first, std::size_t width);

/// The block of warnings below a table, after an empty line; nothing where there are none.
[[nodiscard]] std::string warnings(std::span<const Warning> warnings, std::size_t width);

/// The first column is set left, the others right, unless their title begins with '<'. A title may have several lines.
class Table {
 public:
  explicit Table(std::vector<std::string> titles);
  void add(std::vector<std::string> row);

  /// Columns that do not fit into the width follow below, beside the first column once more.
  [[nodiscard]] std::string text(std::size_t width) const;

 private:
  [[nodiscard]] std::size_t column_width(std::size_t column) const;
  [[nodiscard]] std::string block(const std::vector<std::size_t>& columns) const;

  std::vector<std::vector<std::string>> titles_;  // [column][line], all of the same number of lines
  std::vector<bool> left_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace poise::text
