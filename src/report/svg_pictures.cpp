/// Two kinds of pictures as SVG: a panel of images, and a learned balancing function beside those in use.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>

#include <poise/plot.hpp>
#include "report/svg.hpp"

namespace poise {

namespace {

using namespace svg;

std::string base64(const std::string& bytes) {
  using namespace boost::archive::iterators;
  using Digits = base64_from_binary<transform_width<std::string::const_iterator, 6, 8>>;
  std::string out(Digits(bytes.begin()), Digits(bytes.end()));
  return out.append((3 - bytes.size() % 3) % 3, '=');
}

}  // namespace

std::string render_panel(const PicturePanel& panel) {
  if (panel.pictures.empty() || panel.per_row == 0)
    throw std::invalid_argument("render_panel: a panel without pictures");
  constexpr double gap = 14;
  constexpr double caption = 22;
  const double top = panel.title.empty() ? 8 : 34;
  const std::size_t columns = std::min(panel.per_row, panel.pictures.size());
  const std::size_t rows = (panel.pictures.size() + columns - 1) / columns;
  double tallest = 0;
  for (const Picture& picture : panel.pictures) {
    tallest = std::max(
        tallest, panel.side * static_cast<double>(picture.image.height) / static_cast<double>(picture.image.width));
  }
  const double width = static_cast<double>(columns) * (panel.side + gap) + gap;
  const double height = top + static_cast<double>(rows) * (tallest + caption + 6);
  std::string out = opening(width, height, panel.title.empty() ? "pictures" : panel.title);
  if (!panel.title.empty()) {
    out +=
        fmt::format("<text x=\"{}\" y=\"22\" text-anchor=\"middle\" font-size=\"15\" font-weight=\"bold\">{}</text>\n",
                    coordinate(width / 2), escaped(panel.title));
  }
  for (std::size_t i = 0; i < panel.pictures.size(); ++i) {
    const Picture& picture = panel.pictures[i];
    const double x = gap + static_cast<double>(i % columns) * (panel.side + gap);
    const std::size_t row = i / columns;
    const double y = top + static_cast<double>(row) * (tallest + caption + 6);
    out += fmt::format(
        "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" "
        "style=\"image-rendering:pixelated\" href=\"data:image/png;base64,{}\"/>\n",
        coordinate(x), coordinate(y), coordinate(panel.side), coordinate(tallest), base64(png_bytes(picture.image)));
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"12\">{}</text>\n",
                       coordinate(x + panel.side / 2), coordinate(y + tallest + 15), escaped(picture.caption));
  }
  return out + "</svg>\n";
}

namespace {

/// Linear between the knots, and beyond them as in the first or last interval.
double interpolated(std::span<const double> knots, std::span<const double> values, double at) {
  if (knots.size() == 1) return values[0];
  const auto above = std::upper_bound(knots.begin(), knots.end(), at) - knots.begin();
  const auto right = std::clamp<std::size_t>(static_cast<std::size_t>(above), 1, knots.size() - 1);
  const double rise = (values[right] - values[right - 1]) / (knots[right] - knots[right - 1]);
  return values[right - 1] + rise * (at - knots[right - 1]);
}

}  // namespace

std::string balance_plot(std::span<const double> knots, std::span<const double> log_phi) {
  const auto is_finite = [](double value) { return std::isfinite(value); };
  if (knots.empty() || knots.size() != log_phi.size() || !std::all_of(knots.begin(), knots.end(), is_finite) ||
      !std::all_of(log_phi.begin(), log_phi.end(), is_finite) ||
      std::adjacent_find(knots.begin(), knots.end(), std::greater_equal<>()) != knots.end()) {
    throw std::invalid_argument("balance_plot: knots must rise, with one finite value of log_phi for each");
  }
  constexpr double kRange = 6;
  constexpr int kPoints = 480;
  Plot plot;
  plot.x_label = "ratio t = p(x\u2032)/p(x)";
  plot.y_label = "g(t)/g(1)";
  plot.x_log = plot.y_log = true;
  plot.series = {{.label = "learned", .color = "#d55e00", .line_width = 3.2},
                 {.label = "max{1, t}", .color = "#cc79a7", .line_width = 1.6, .dash = "8 3 2 3"},
                 {.label = "\u221at", .color = "#000000", .line_width = 1.6},
                 {.label = "t/(1 + t)", .color = "#0072b2", .line_width = 1.6, .dash = "7 3"},
                 {.label = "min{1, t}", .color = "#009e73", .line_width = 1.6, .dash = "2 3"}};
  const double at_one = interpolated(knots, log_phi, 0);
  for (int i = 0; i <= kPoints; ++i) {
    const double u = kRange * (2.0 * i / kPoints - 1);
    const double log_g[] = {u / 2 + interpolated(knots, log_phi, std::abs(u)) - at_one, std::max(0.0, u), u / 2,
                            u - std::log1p(std::exp(u)) + std::log(2.0), std::min(0.0, u)};
    for (std::size_t k = 0; k < plot.series.size(); ++k) {
      plot.series[k].x.push_back(std::exp(u));
      plot.series[k].y.push_back(std::exp(log_g[k]));
    }
  }
  return render_svg(plot);
}

}  // namespace poise
