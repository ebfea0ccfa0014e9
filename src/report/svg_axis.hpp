/// An axis of a plot: its range, its scale and its ticks.
#pragma once

#include <string>
#include <vector>

namespace poise::svg {

struct Tick {
  double value;
  std::string label;  ///< SVG markup; empty for a minor tick
};

/// Maps values to [0, 1] and knows where the ticks are.
class Axis {
 public:
  Axis(double low, double high, bool is_log);
  /// Names at equal distances: that of number i stands at i + 1/2.
  explicit Axis(const std::vector<std::string>& names);

  /// Position of a value; NaN where the value has none.
  [[nodiscard]] double fraction(double value) const;
  [[nodiscard]] const std::vector<Tick>& ticks() const { return ticks_; }
  /// Power of ten that the labels leave out; 0 when they are complete.
  [[nodiscard]] int exponent() const { return exponent_; }

 private:
  void linear_ticks();
  void log_ticks();

  double low_;
  double high_;
  bool log_;
  int exponent_ = 0;
  std::vector<Tick> ticks_;
};

/// 10 to the power of an integer, as markup.
[[nodiscard]] std::string power_of_ten(int exponent);

/// The number with so many decimals and a true minus sign.
[[nodiscard]] std::string number_label(double value, int decimals);

}  // namespace poise::svg
