/// Quartiles, whiskers and outliers.
#include "report/svg_boxes.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "report/svg_text.hpp"

namespace poise::svg {

namespace {

/// A quantile of sorted values, linear between neighbours (type 7).
double quantile(const std::vector<double>& sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::string stroke(double x1, double y1, double x2, double y2, double width) {
  return fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#222222\" stroke-width=\"{}\"/>\n",
                     coordinate(x1), coordinate(y1), coordinate(x2), coordinate(y2), width);
}

}  // namespace

std::string box_markup(const Boxed& box, const BoxPlace& place, const std::function<double(double)>& height) {
  std::vector<double> values;
  for (const double value : box.values) {
    if (std::isfinite(value) && std::isfinite(height(value))) values.push_back(value);
  }
  if (values.empty()) return "";
  std::sort(values.begin(), values.end());
  const double low = quantile(values, 0.25);
  const double median = quantile(values, 0.5);
  const double high = quantile(values, 0.75);
  const double reach = 1.5 * (high - low);
  const double bottom = *std::lower_bound(values.begin(), values.end(), low - reach);
  const double top = *(std::upper_bound(values.begin(), values.end(), high + reach) - 1);
  const double left = place.middle - place.width / 2;
  const double cap = place.width / 4;
  std::string out;
  out += stroke(place.middle, height(top), place.middle, height(high), 1);
  out += stroke(place.middle, height(low), place.middle, height(bottom), 1);
  for (const double end : {bottom, top}) {
    out += stroke(place.middle - cap, height(end), place.middle + cap, height(end), 1);
  }
  out += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" fill-opacity=\"0.65\" stroke=\"#222222\"/>\n",
      coordinate(left), coordinate(height(high)), coordinate(place.width),
      coordinate(std::max(0.0, height(low) - height(high))), escaped(place.color));
  out += stroke(left, height(median), left + place.width, height(median), 2.2);
  for (const double value : values) {
    if (value >= bottom && value <= top) continue;
    out += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"1.6\" fill=\"#222222\" fill-opacity=\"0.5\"/>\n",
                       coordinate(place.middle), coordinate(height(value)));
  }
  return out;
}

}  // namespace poise::svg
