/// Points, boxes and the clipping of lines.
#pragma once

#include <algorithm>

namespace poise::svg {

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

}  // namespace poise::svg
