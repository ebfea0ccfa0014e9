/// Plots as SVG: the frame, lines or boxes, and a legend placed where it hides least.
#include <poise/plot.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "report/svg.hpp"

namespace poise {

namespace {

using namespace svg;

constexpr double kTickSize = 12;  // of letters
constexpr double kLabelSize = 14;
constexpr double kTitleSize = 15;
constexpr double kTickLength = 4;
constexpr double kLegendRow = 19;
constexpr double kLegendLine = 28;  // length of the sample of a line
constexpr std::string_view kInk = "#222222";
constexpr std::string_view kGrid = "#e4e4e4";

/// Okabe and Ito's palette, distinct in every common kind of colour blindness, without its yellow: too faint on white.
constexpr std::array<std::string_view, 7> kPalette{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                   "#e69f00", "#56b4e9", "#000000"};
constexpr std::array<std::string_view, 4> kDashes{"", "7 3", "2 3", "8 3 2 3"};

/// A label of a tick holds markup only for powers of ten.
double tick_width(const std::string& label) {
  return label.find('<') == std::string::npos ? width_of(label, kTickSize) : 2.6 * kTickSize;
}

std::pair<double, double> limits(const Plot& plot, bool of_x) {
  const bool log = of_x ? plot.x_log : plot.y_log;
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  bool markers = false;
  const auto take = [&](const std::vector<double>& values) {
    for (const double value : values) {
      if (!std::isfinite(value) || (log && value <= 0)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  };
  for (const Series& series : plot.series) {
    take(of_x ? series.x : series.y);
    if (!of_x) take(series.low);
    if (!of_x) take(series.high);
    markers = markers || series.marker_radius > 0;
  }
  if (!of_x) {
    for (const Boxed& box : plot.boxes) take(box.values);
  }
  if (low > high) std::tie(low, high) = log ? std::pair(1.0, 10.0) : std::pair(0.0, 1.0);
  // A range that the numbers can hardly resolve is shown as one value.
  if (high - low <= 1e-9 * std::max(std::abs(low), std::abs(high))) high = low;
  // Room around the data; along x lines may touch the frame.
  const double room = of_x ? (markers ? 0.03 : 0) : 0.05;
  if (log) {
    const double factor = low == high ? 2 : std::exp(room * (std::log(high) - std::log(low)));
    low = std::max(low / factor, std::numeric_limits<double>::min());
    high = std::min(high * factor, std::numeric_limits<double>::max());
  } else {
    const double extra = low == high ? std::max(std::abs(low) / 10, 0.5) : room * (high - low);
    low -= extra;
    high += extra;
  }
  const auto& given_low = of_x ? plot.x_min : plot.y_min;
  const auto& given_high = of_x ? plot.x_max : plot.y_max;
  low = given_low.value_or(low);
  high = given_high.value_or(high);
  if (!std::isfinite(low) || !std::isfinite(high) || !std::isfinite(high - low) || low >= high || (log && low <= 0)) {
    throw std::invalid_argument(
        fmt::format("render_svg: {} to {} is no range of a {} axis", low, high, log ? "logarithmic" : "linear"));
  }
  return {low, high};
}

void check(const Plot& plot) {
  for (const Series& series : plot.series) {
    const bool band = !series.low.empty() || !series.high.empty();
    if (series.x.size() != series.y.size() ||
        (band && (series.low.size() != series.x.size() || series.high.size() != series.x.size()))) {
      throw std::invalid_argument("render_svg: the arrays of series '" + series.label + "' differ in length");
    }
  }
}

class Renderer {
 public:
  explicit Renderer(const Plot& plot)
      : plot_(plot), x_(make_axis(plot, true)), y_(make_axis(plot, false)), series_(styled(plot)) {}

  std::string render() {
    for (const Series& series : series_) {
      if (series.label.empty()) continue;
      ++legend_rows_;
      legend_width_ = std::max(legend_width_, width_of(series.label, kTickSize) + kLegendLine + 20);
    }
    const bool wanted = plot_.legend != Legend::none && legend_rows_ > 0;
    set_area(0);
    const bool outside = wanted && (plot_.legend == Legend::outside || !find_corner());
    if (outside) {
      set_area(legend_width_ + 8);
      legend_ = {area_.right + 8, area_.top, 0, 0};
    }
    out_ = opening(plot_.width, plot_.height, plot_.title.empty() ? plot_.y_label : plot_.title);
    draw_axes();
    draw_lines();
    if (wanted) draw_legend(!outside);
    return out_ + "</svg>\n";
  }

 private:
  static Axis make_axis(const Plot& plot, bool of_x) {
    if (of_x && !plot.x_names.empty()) return Axis(plot.x_names);
    if (of_x && !plot.boxes.empty()) {
      std::vector<std::string> names;
      for (const Boxed& box : plot.boxes) names.push_back(box.label);
      return Axis(names);
    }
    const auto [low, high] = limits(plot, of_x);
    return {low, high, of_x ? plot.x_log : plot.y_log};
  }

  static std::vector<Series> styled(const Plot& plot) {
    std::vector<Series> all = plot.series;
    std::size_t next = 0;
    for (Series& series : all) {
      if (!series.color.empty()) continue;
      series.color = kPalette[next % kPalette.size()];
      if (series.dash.empty()) series.dash = kDashes[next / kPalette.size() % kDashes.size()];
      ++next;
    }
    return all;
  }

  void set_area(double right) {
    double labels = 0;
    for (const Tick& tick : y_.ticks()) labels = std::max(labels, tick_width(tick.label));
    area_.left = 10 + labels + kTickLength + 5 + (plot_.y_label.empty() ? 0 : kLabelSize + 10);
    area_.top = (plot_.title.empty() ? 12 : kTitleSize + 22) + (y_.exponent() != 0 ? 12 : 0);
    // Half of a label of the x axis may stand out on the right.
    const double overhang = x_.ticks().empty() ? 0 : tick_width(x_.ticks().back().label) / 2;
    area_.right = plot_.width - std::max({right, 14.0, overhang + 8});
    area_.bottom = plot_.height - (has_second_line() ? 43 : 30) -
                   (plot_.x_label.empty() && x_.exponent() == 0 ? 0 : kLabelSize + 10);
    area_.right = std::max(area_.right, area_.left + 40);
    area_.bottom = std::max(area_.bottom, area_.top + 40);
  }

  [[nodiscard]] Point place(double x, double y) const {
    return {area_.left + x_.fraction(x) * area_.width(), area_.bottom - y_.fraction(y) * area_.height()};
  }

  /// A little more than the plot: lines are cut here by calculation, and at the frame itself by the viewer.
  [[nodiscard]] Box cut() const { return {area_.left - 20, area_.top - 20, area_.right + 20, area_.bottom + 20}; }

  /// Calls visit(from, to) for each visible segment of a series.
  template <typename Visit>
  void for_segments(const Series& series, Visit&& visit) const {
    for (std::size_t i = 1; i < series.x.size(); ++i) {
      Point from = place(series.x[i - 1], series.y[i - 1]);
      Point to = place(series.x[i], series.y[i]);
      const bool known = std::isfinite(from.x) && std::isfinite(from.y) && std::isfinite(to.x) && std::isfinite(to.y);
      if (known && clip(cut(), from, to)) visit(from, to);
    }
  }

  /// Whether some corner has room for the legend without a line through it; the emptiest such corner is taken.
  bool find_corner() {
    const double width = legend_width_ + 4;
    const double height = kLegendRow * static_cast<double>(legend_rows_) + 8;
    if (width > 0.6 * area_.width() || height > 0.6 * area_.height()) return false;
    const double gap = 8;
    const Box inner{area_.left + gap, area_.top + gap, area_.right - gap, area_.bottom - gap};
    const std::array<Box, 4> corners{Box{inner.right - width, inner.top, inner.right, inner.top + height},
                                     Box{inner.left, inner.top, inner.left + width, inner.top + height},
                                     Box{inner.right - width, inner.bottom - height, inner.right, inner.bottom},
                                     Box{inner.left, inner.bottom - height, inner.left + width, inner.bottom}};
    for (const Box& corner : corners) {
      bool free = true;
      const auto touch = [&](const Point& p) { free = free && !corner.holds(p); };
      for (const Series& series : series_) {
        if (!free) break;
        if (series.line_width > 0) {
          for_segments(series, [&](Point from, Point to) { free = free && !clip(corner, from, to); });
        }
        for (std::size_t i = 0; i < series.x.size() && free; ++i) {
          touch(place(series.x[i], series.y[i]));
          if (series.low.empty()) continue;
          const Point low = place(series.x[i], series.low[i]);
          const Point high = place(series.x[i], series.high[i]);
          const bool beside = low.x < corner.left || low.x > corner.right;
          free = free && (beside || low.y < corner.top || high.y > corner.bottom);
        }
      }
      if (!free) continue;
      legend_ = corner;
      return true;
    }
    return false;
  }

  void line(const Point& from, const Point& to, std::string_view color, double width) {
    out_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"{}\"/>\n",
                        coordinate(from.x), coordinate(from.y), coordinate(to.x), coordinate(to.y), color, width);
  }

  /// `markup` is already escaped.
  void text(const Point& at, std::string_view anchor, double size, const std::string& markup,
            const std::string& more = "") {
    out_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" font-size=\"{}\"{}>{}</text>\n", coordinate(at.x),
                        coordinate(at.y), anchor, size, more, markup);
  }

  /// What follows a comma in the name of a box stands on a line of its own, so that neighbours do not touch.
  void tick_text(const Point& at, const std::string& label) {
    const std::size_t comma = plot_.boxes.empty() ? std::string::npos : label.find(", ");
    text(at, "middle", kTickSize, label.substr(0, comma));
    if (comma != std::string::npos) text({at.x, at.y + 13}, "middle", kTickSize, label.substr(comma + 2));
  }

  [[nodiscard]] bool has_second_line() const {
    return std::any_of(plot_.boxes.begin(), plot_.boxes.end(),
                       [](const Boxed& box) { return box.label.find(", ") != std::string::npos; });
  }

  void draw_axes() {
    for (const Tick& tick : x_.ticks()) {
      const double x = area_.left + x_.fraction(tick.value) * area_.width();
      const bool major = !tick.label.empty();
      if (major) line({x, area_.top}, {x, area_.bottom}, kGrid, 0.8);
      line({x, area_.bottom}, {x, area_.bottom + (major ? kTickLength : kTickLength / 2)}, kInk, 0.8);
      if (major) tick_text({x, area_.bottom + kTickLength + 14}, tick.label);
    }
    for (const Tick& tick : y_.ticks()) {
      const double y = area_.bottom - y_.fraction(tick.value) * area_.height();
      const bool major = !tick.label.empty();
      if (major) line({area_.left, y}, {area_.right, y}, kGrid, 0.8);
      line({area_.left - (major ? kTickLength : kTickLength / 2), y}, {area_.left, y}, kInk, 0.8);
      if (major) text({area_.left - kTickLength - 4, y + 4.2}, "end", kTickSize, tick.label);
    }
    line({area_.left, area_.top}, {area_.left, area_.bottom}, kInk, 1);
    line({area_.left, area_.bottom}, {area_.right, area_.bottom}, kInk, 1);
    const double middle = (area_.left + area_.right) / 2;
    if (x_.exponent() != 0) {
      text({area_.right, plot_.height - 12}, "end", kTickSize, "\u00d7 " + power_of_ten(x_.exponent()));
    }
    if (y_.exponent() != 0) {
      text({area_.left - 20, area_.top - 8}, "start", kTickSize, "\u00d7 " + power_of_ten(y_.exponent()));
    }
    if (!plot_.x_label.empty()) text({middle, plot_.height - 12}, "middle", kLabelSize, escaped(plot_.x_label));
    if (!plot_.y_label.empty()) {
      const Point at{10 + kLabelSize * 0.75, (area_.top + area_.bottom) / 2};
      text(at, "middle", kLabelSize, escaped(plot_.y_label),
           fmt::format(" transform=\"rotate(-90 {} {})\"", coordinate(at.x), coordinate(at.y)));
    }
    if (!plot_.title.empty()) {
      text({middle, 10 + kTitleSize}, "middle", kTitleSize, escaped(plot_.title), " font-weight=\"bold\"");
    }
  }

  void draw_lines() {
    // A nested viewport cuts what it holds without an id, so that several plots can share one page.
    out_ += fmt::format(
        "<svg x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" viewBox=\"{0} {1} {2} {3}\" "
        "overflow=\"hidden\">\n",
        coordinate(area_.left), coordinate(area_.top), coordinate(area_.width()), coordinate(area_.height()));
    for (auto series = series_.rbegin(); series != series_.rend(); ++series) draw_band(*series);
    for (auto series = series_.rbegin(); series != series_.rend(); ++series) {
      if (series->line_width > 0) draw_line(*series);
      draw_markers(*series);
    }
    draw_boxes();
    out_ += "</svg>\n";
  }

  void draw_band(const Series& series) {
    std::string upper;
    std::string lower;
    const auto finish = [&] {
      if (!upper.empty()) {
        out_ += fmt::format("<polygon points=\"{}{}\" fill=\"{}\" fill-opacity=\"0.2\"/>\n", upper, lower,
                            escaped(series.color));
      }
      upper.clear();
      lower.clear();
    };
    for (std::size_t i = 0; i < series.low.size(); ++i) {
      Point low = place(series.x[i], series.low[i]);
      Point high = place(series.x[i], series.high[i]);
      // A lower edge at or below 0 on a log axis lies below the frame.
      if (plot_.y_log && series.low[i] <= 0) low = {high.x, cut().bottom};
      if (!std::isfinite(low.x) || std::isnan(low.y) || std::isnan(high.y)) {
        finish();
        continue;
      }
      low.y = std::clamp(low.y, cut().top, cut().bottom);
      high.y = std::clamp(high.y, cut().top, cut().bottom);
      const std::string x = coordinate(std::clamp(low.x, area_.left - 1e4, area_.right + 1e4));
      upper += fmt::format("{},{} ", x, coordinate(high.y));
      lower = fmt::format("{},{} ", x, coordinate(low.y)) + lower;
    }
    finish();
  }

  void draw_line(const Series& series) {
    std::string path;
    std::string last;
    for_segments(series, [&](const Point& from, const Point& to) {
      const std::string start = fmt::format("{} {}", coordinate(from.x), coordinate(from.y));
      const std::string end = fmt::format("{} {}", coordinate(to.x), coordinate(to.y));
      if (start != last) path += "M" + start;
      if (start == last && end == last) return;
      path += "L" + end;
      last = end;
    });
    if (path.empty()) return;
    out_ += fmt::format("<path d=\"{}\" {}/>\n", path, stroke(series));
  }

  static std::string stroke(const Series& series) {
    const std::string dash = series.dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", escaped(series.dash));
    return fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"{}",
                       escaped(series.color), series.line_width, dash);
  }

  void draw_markers(const Series& series) {
    if (!(series.marker_radius > 0)) return;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      const Point p = place(series.x[i], series.y[i]);
      if (cut().holds(p)) marker(p, series);
    }
  }

  void marker(const Point& p, const Series& series) {
    out_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"/>\n", coordinate(p.x), coordinate(p.y),
                        series.marker_radius, escaped(series.color));
  }

  void draw_boxes() {
    const double slot = area_.width() / static_cast<double>(std::max<std::size_t>(1, plot_.boxes.size()));
    for (std::size_t i = 0; i < plot_.boxes.size(); ++i) {
      const Boxed& box = plot_.boxes[i];
      const std::string color = box.color.empty() ? std::string(kPalette[i % kPalette.size()]) : box.color;
      const double middle = area_.left + (static_cast<double>(i) + 0.5) * slot;
      const auto height = [&](double value) { return area_.bottom - y_.fraction(value) * area_.height(); };
      out_ += box_markup(box, {middle, std::min(0.6 * slot, 60.0), color}, height);
    }
  }

  void draw_legend(bool inside) {
    if (inside) {
      out_ += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\" fill=\"#ffffff\" "
          "stroke=\"{}\"/>\n",
          coordinate(legend_.left), coordinate(legend_.top), coordinate(legend_.width()), coordinate(legend_.height()),
          kGrid);
    }
    double y = legend_.top + 4 + kLegendRow / 2;
    for (const Series& series : series_) {
      if (series.label.empty()) continue;
      const double x = legend_.left + 6;
      if (!series.low.empty()) {
        out_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"10\" fill=\"{}\" fill-opacity=\"0.2\"/>\n",
                            coordinate(x), coordinate(y - 5), kLegendLine, escaped(series.color));
      }
      if (series.line_width > 0) {
        out_ += fmt::format("<path d=\"M{} {}h{}\" {}/>\n", coordinate(x), coordinate(y), kLegendLine, stroke(series));
      }
      if (series.marker_radius > 0) marker({x + kLegendLine / 2, y}, series);
      text({x + kLegendLine + 8, y + 4.2}, "start", kTickSize, escaped(series.label));
      y += kLegendRow;
    }
  }

  const Plot& plot_;
  Axis x_;
  Axis y_;
  std::vector<Series> series_;
  Box area_;
  Box legend_;
  std::size_t legend_rows_ = 0;
  double legend_width_ = 0;
  std::string out_;
};

}  // namespace

std::string render_svg(const Plot& plot) {
  check(plot);
  return Renderer(plot).render();
}

std::string render_row(std::span<const Plot> plots) {
  std::vector<std::string> documents;
  for (const Plot& plot : plots) documents.push_back(render_svg(plot));
  return beside(documents);
}

}  // namespace poise
