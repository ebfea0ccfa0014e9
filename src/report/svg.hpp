/// Elements of SVG: text and coordinates, points and boxes, axes with ticks, one box of a box plot.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/plot.hpp>

namespace poise::svg {

/// Text as XML: markup is escaped, and what XML cannot hold is replaced.
[[nodiscard]] std::string escaped(std::string_view text);

/// The beginning of a picture of its own: the root element, its title, a white ground.
[[nodiscard]] std::string opening(double width, double height, std::string_view title);

/// Documents side by side, and one below the other, as one. Each begins with what `opening` writes.
[[nodiscard]] std::string beside(std::span<const std::string> documents);
[[nodiscard]] std::string stacked(std::span<const std::string> documents, std::string_view title);

/// About the width of a text in a sans-serif font, rather too large than too small.
[[nodiscard]] double width_of(std::string_view text, double size);

/// A number of pixels with at most two decimals.
[[nodiscard]] std::string coordinate(double value);

struct Point {
  double x;
  double y;
};

struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  [[nodiscard]] double width() const { return right - left; }
  [[nodiscard]] double height() const { return bottom - top; }
  [[nodiscard]] bool holds(const Point& p) const { return p.x > left && p.x < right && p.y > top && p.y < bottom; }
};

/// The part of a segment inside a box (Liang and Barsky); false when there is none.
inline bool clip(const Box& box, Point& a, Point& b) {
  const Point start = a;
  const double dx = b.x - a.x;
  const double dy = b.y - a.y;
  double enter = 0;
  double leave = 1;
  const auto edge = [&](double direction, double distance) {
    if (direction == 0) return distance >= 0;
    const double at = distance / direction;
    if (direction < 0) enter = std::max(enter, at);
    if (direction > 0) leave = std::min(leave, at);
    return enter <= leave;
  };
  if (!edge(-dx, start.x - box.left) || !edge(dx, box.right - start.x) || !edge(-dy, start.y - box.top) ||
      !edge(dy, box.bottom - start.y)) {
    return false;
  }
  b = {start.x + leave * dx, start.y + leave * dy};
  a = {start.x + enter * dx, start.y + enter * dy};
  return true;
}

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

struct BoxPlace {
  double middle;  ///< x of its middle line
  double width;
  std::string color;
};

/// Markup of the box; `height` gives the y of a value.
[[nodiscard]] std::string box_markup(const Boxed& box, const BoxPlace& place,
                                     const std::function<double(double)>& height);

}  // namespace poise::svg
