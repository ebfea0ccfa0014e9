/// Bars with names, values and errors as SVG.
#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include <poise/plot.hpp>
#include "report/svg.hpp"
#include "report/text.hpp"

namespace poise {

namespace {

using namespace svg;

constexpr double kRow = 20;
constexpr double kGap = 9;  // above a group
constexpr double kLetters = 12;
constexpr double kLongestName = 200;

/// Cut where it would not fit.
std::string shortened(const std::string& name) {
  if (width_of(name, kLetters) <= kLongestName) return name;
  std::string out;
  for (std::size_t k = 0; k < name.size(); ++k) {
    const bool begins = (static_cast<unsigned char>(name[k]) & 0xC0U) != 0x80U;
    if (begins && width_of(out, kLetters) > kLongestName - 12) break;
    out += name[k];
  }
  return out + "\u2026";
}

std::string text_at(double x, double y, std::string_view anchor, const std::string& markup) {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n", coordinate(x),
                     coordinate(y), anchor, kLetters, markup);
}

}  // namespace

std::string render_bars(const BarChart& chart) {
  double names = 40, numbers = 40, most = 0;
  std::vector<std::string> shown;
  for (const Bar& bar : chart.bars) {
    shown.push_back(std::isfinite(bar.value)
                        ? (bar.error > 0 ? text::mean(bar.value, bar.error) : text::number(bar.value))
                        : std::string("not known"));
    if (!bar.note.empty()) shown.back() += " " + bar.note;
    names = std::max(names, width_of(shortened(bar.label), kLetters));
    numbers = std::max(numbers, width_of(shown.back(), kLetters));
    if (std::isfinite(bar.value)) most = std::max(most, bar.value + (bar.error > 0 ? bar.error : 0));
  }
  most = chart.x_max.value_or(most > 0 ? most : 1);
  const double top = chart.title.empty() ? 12 : 36;
  const double left = 16 + names, right = std::max(left + 60, chart.width - numbers - 22);
  double y = top;
  std::string rows;
  const auto place = [&](double value) { return left + std::clamp(value / most, 0.0, 1.0) * (right - left); };
  for (std::size_t k = 0; k < chart.bars.size(); ++k) {
    const Bar& bar = chart.bars[k];
    if (bar.first_of_group && k > 0) y += kGap;
    rows += text_at(left - 8, y + 14, "end", escaped(shortened(bar.label)));
    if (std::isfinite(bar.value)) {
      rows += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#56b4e9\"/>\n", coordinate(left),
                          coordinate(y + 3), coordinate(place(bar.value) - left), coordinate(kRow - 6));
    }
    if (bar.error > 0 && std::isfinite(bar.error) && std::isfinite(bar.value)) {
      const double low = place(bar.value - bar.error), high = place(bar.value + bar.error), middle = y + kRow / 2;
      rows += fmt::format("<path d=\"M{0} {2}H{1}M{0} {3}V{4}M{1} {3}V{4}\" stroke=\"#222222\" fill=\"none\"/>\n",
                          coordinate(low), coordinate(high), coordinate(middle), coordinate(middle - 4),
                          coordinate(middle + 4));
    }
    rows += text_at(right + 8, y + 14, "start", escaped(shown[k]));
    y += kRow;
  }
  const double bottom = y + 4;
  std::string axis;
  const Axis scale(0.0, most, false);
  for (const Tick& tick : scale.ticks()) {
    if (tick.label.empty()) continue;
    axis += fmt::format("<path d=\"M{0} {1}V{2}\" stroke=\"#e4e4e4\" stroke-width=\"0.8\"/>\n",
                        coordinate(left + scale.fraction(tick.value) * (right - left)), coordinate(top),
                        coordinate(bottom));
    axis += text_at(left + scale.fraction(tick.value) * (right - left), bottom + 16, "middle", tick.label);
  }
  if (scale.exponent() != 0)
    axis += text_at(right + 8, bottom + 16, "start", "\u00d7 " + power_of_ten(scale.exponent()));
  axis += text_at((left + right) / 2, bottom + 36, "middle", escaped(chart.x_label));
  std::string out = opening(chart.width, bottom + 46, chart.title.empty() ? chart.x_label : chart.title);
  if (!chart.title.empty()) {
    out +=
        fmt::format("<text x=\"{}\" y=\"22\" text-anchor=\"middle\" font-size=\"15\" font-weight=\"bold\">{}</text>\n",
                    coordinate(chart.width / 2), escaped(chart.title));
  }
  return out + axis + rows + "</svg>\n";
}

}  // namespace poise
