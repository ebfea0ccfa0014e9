/// Digits drawn as strokes, for when there is no file of them: arcs and lines, bent, slanted and inked at random.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include "studies/images/idx.hpp"

namespace poise {
namespace {

constexpr std::size_t kSide = 28;
constexpr double kPi = std::numbers::pi;

struct Point {
  double x = 0;
  double y = 0;
};

using Stroke = std::vector<Point>;
using Glyph = std::vector<Stroke>;

/// A pen in the unit square, y downwards. Consecutive segments of one stroke are joined by straight lines.
class Pen {
 public:
  Pen& line(std::initializer_list<Point> points) {
    for (const Point& to : points) {
      if (stroke_.empty()) {
        stroke_.push_back(to);
        continue;
      }
      // Cut up, so that lines bend under the warp of the hand as well.
      const Point from = stroke_.back();
      for (int k = 1; k <= 6; ++k) {
        stroke_.push_back({from.x + (to.x - from.x) * k / 6, from.y + (to.y - from.y) * k / 6});
      }
    }
    return *this;
  }

  /// Part of an ellipse between two angles in degrees: 0 is to the right, 90 below.
  Pen& arc(Point centre, Point radius, double from, double to) {
    constexpr int segments = 16;
    for (int k = 0; k <= segments; ++k) {
      const double angle = (from + (to - from) * k / segments) * kPi / 180;
      stroke_.push_back({centre.x + radius.x * std::cos(angle), centre.y + radius.y * std::sin(angle)});
    }
    return *this;
  }

  Stroke done() {
    Stroke stroke;
    stroke.swap(stroke_);
    return stroke;
  }

 private:
  Stroke stroke_;
};

/// Two ways to write each digit.
Glyph glyph_of(std::size_t digit, bool other) {
  Pen pen;
  switch (digit) {
    case 0:
      if (other) return {pen.arc({0.5, 0.5}, {0.38, 0.46}, -60, 290).done()};
      return {pen.arc({0.5, 0.5}, {0.32, 0.5}, -90, 270).done()};
    case 1:
      if (other) return {pen.line({{0.32, 0.22}, {0.54, 0}, {0.5, 1}}).done()};
      return {pen.line({{0.53, 0}, {0.47, 1}}).done()};
    case 2:
      if (other) {  // with a loop at the foot
        return {pen.arc({0.5, 0.27}, {0.32, 0.27}, 195, 385)
                    .arc({0.28, 0.86}, {0.15, 0.12}, 20, 250)
                    .line({{0.55, 0.88}, {0.95, 0.92}})
                    .done()};
      }
      return {pen.arc({0.48, 0.28}, {0.34, 0.28}, 190, 390).line({{0.12, 1}, {0.9, 0.97}}).done()};
    case 3:
      if (other) {
        return {pen.line({{0.18, 0.02}, {0.78, 0.02}, {0.42, 0.4}}).arc({0.44, 0.7}, {0.36, 0.3}, -80, 145).done()};
      }
      return {pen.arc({0.45, 0.25}, {0.32, 0.25}, 205, 440).arc({0.45, 0.74}, {0.38, 0.26}, -85, 155).done()};
    case 4:
      if (other)
        return {pen.line({{0.62, 0}, {0.1, 0.65}, {0.92, 0.65}}).done(), pen.line({{0.68, 0.3}, {0.64, 1}}).done()};
      return {pen.line({{0.16, 0.02}, {0.14, 0.5}, {0.8, 0.5}}).done(), pen.line({{0.82, 0}, {0.78, 1}}).done()};
    case 5:
      if (other) {
        return {pen.line({{0.26, 0.04}, {0.22, 0.44}}).arc({0.44, 0.7}, {0.36, 0.29}, -110, 150).done(),
                pen.line({{0.26, 0.04}, {0.86, 0.02}}).done()};
      }
      return {pen.line({{0.84, 0.02}, {0.3, 0.04}, {0.24, 0.46}}).arc({0.45, 0.7}, {0.37, 0.3}, -105, 140).done()};
    case 6:
      if (other) return {pen.line({{0.56, 0}, {0.22, 0.6}}).arc({0.49, 0.74}, {0.29, 0.26}, 195, 540).done()};
      return {pen.arc({0.78, 0.66}, {0.62, 0.66}, 260, 180).arc({0.47, 0.73}, {0.31, 0.27}, 170, 530).done()};
    case 7:
      if (other) {  // with a bar
        return {pen.line({{0.12, 0.06}, {0.86, 0.04}, {0.4, 1}}).done(), pen.line({{0.3, 0.52}, {0.82, 0.5}}).done()};
      }
      return {pen.line({{0.12, 0.08}, {0.84, 0.04}, {0.56, 0.5}, {0.44, 1}}).done()};
    case 8:
      if (other) {
        return {pen.arc({0.5, 0.24}, {0.24, 0.24}, -90, 270).done(),
                pen.arc({0.5, 0.74}, {0.3, 0.26}, -90, 270).done()};
      }
      return {pen.arc({0.52, 0.24}, {0.26, 0.24}, -30, -250)
                  .arc({0.46, 0.75}, {0.3, 0.25}, -50, 225)
                  .line({{0.76, 0.12}})
                  .done()};
    default:
      if (other) return {pen.arc({0.48, 0.27}, {0.3, 0.27}, 0, -360).line({{0.74, 1}}).done()};
      return {
          pen.arc({0.5, 0.27}, {0.3, 0.27}, -20, -350).line({{0.8, 0.4}}).arc({0.4, 0.5}, {0.4, 0.5}, 0, 80).done()};
  }
}

double between(Rng& rng, double low, double high) { return low + (high - low) * rng.uniform(); }

/// From the unit square to the picture: warped by slow waves, then scaled, slanted, turned and shifted.
void write_by_hand(Glyph& glyph, Rng& rng) {
  const double wave_x = between(rng, -0.09, 0.09);
  const double wave_y = between(rng, -0.07, 0.07);
  const double phase_x = between(rng, 0, 2 * kPi);
  const double phase_y = between(rng, 0, 2 * kPi);
  const double height = between(rng, 16.5, 20);
  const double width = height * between(rng, 0.72, 1.0);
  const double slant = between(rng, -0.08, 0.36);  // most hands lean to the right
  const double turn = between(rng, -0.1, 0.1);
  const Point shift = {between(rng, -1, 1), between(rng, -1, 1)};
  Point low = {1e9, 1e9};
  Point high = {-1e9, -1e9};
  for (Stroke& stroke : glyph) {
    for (Point& p : stroke) {
      const double x = (p.x - 0.5 + wave_x * std::sin(5 * p.y + phase_x)) * width;
      const double y = (p.y - 0.5 + wave_y * std::sin(5 * p.x + phase_y)) * height;
      const double leaning = x - slant * y;
      p = {leaning * std::cos(turn) - y * std::sin(turn), leaning * std::sin(turn) + y * std::cos(turn)};
      low = {std::min(low.x, p.x), std::min(low.y, p.y)};
      high = {std::max(high.x, p.x), std::max(high.y, p.y)};
    }
  }
  // Whatever the slant made of it, the digit stays inside 20 x 20 pixels about the middle, as in MNIST.
  const double fit = std::min(1.0, 20 / std::max(high.x - low.x, high.y - low.y));
  for (Stroke& stroke : glyph) {
    for (Point& p : stroke) {
      p.x = (p.x - (low.x + high.x) / 2) * fit + kSide / 2.0 + shift.x;
      p.y = (p.y - (low.y + high.y) / 2) * fit + kSide / 2.0 + shift.y;
    }
  }
}

double distance(const Point& p, const Point& a, const Point& b) {
  const double dx = b.x - a.x;
  const double dy = b.y - a.y;
  const double length = dx * dx + dy * dy;
  const double along = length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0) : 0.0;
  return std::hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

/// Full within half the width of a stroke, fading over about a pixel.
void ink(const Glyph& glyph, double half_width, double softness, std::uint8_t* pixels) {
  std::array<double, kSide * kSide> nearest{};
  nearest.fill(kSide);
  const double reach = half_width + softness;
  for (const Stroke& stroke : glyph) {
    for (std::size_t k = 1; k < stroke.size(); ++k) {
      const Point& a = stroke[k - 1];
      const Point& b = stroke[k];
      const auto first = [&](double u, double v) {
        return static_cast<std::size_t>(std::clamp(std::floor(std::min(u, v) - reach), 0.0, kSide - 1.0));
      };
      const auto last = [&](double u, double v) {
        return static_cast<std::size_t>(std::clamp(std::ceil(std::max(u, v) + reach), 0.0, kSide - 1.0));
      };
      for (std::size_t y = first(a.y, b.y); y <= last(a.y, b.y); ++y) {
        for (std::size_t x = first(a.x, b.x); x <= last(a.x, b.x); ++x) {
          const Point centre = {static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5};
          nearest[y * kSide + x] = std::min(nearest[y * kSide + x], distance(centre, a, b));
        }
      }
    }
  }
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    const double u = std::clamp((half_width + softness - nearest[i]) / (2 * softness), 0.0, 1.0);
    pixels[i] = static_cast<std::uint8_t>(std::lround(255 * u * u * (3 - 2 * u)));
  }
}

}  // namespace

IdxImages draw_digits(std::size_t count, std::uint64_t seed) {
  IdxImages images{count, kSide, kSide, std::vector<std::uint8_t>(count * kSide * kSide)};
  for (std::size_t i = 0; i < count; ++i) {
    Rng rng = make_rng(seed, Stream::digit, i);
    Glyph glyph = glyph_of(i % 10, rng.uniform() < 0.4);
    write_by_hand(glyph, rng);
    const double half_width = between(rng, 1.15, 1.85);
    const double softness = between(rng, 0.7, 1.1);
    ink(glyph, half_width, softness, images.pixels.data() + i * kSide * kSide);
  }
  return images;
}

}  // namespace poise
