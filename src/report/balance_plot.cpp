/// The picture of a learned balancing function.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <poise/plot.hpp>

namespace poise {

namespace {

/// Linear between the knots, and beyond them with the slope of the first or last piece.
double interpolated(std::span<const double> knots, std::span<const double> values, double at) {
  if (knots.size() == 1) return values[0];
  const auto above = std::upper_bound(knots.begin(), knots.end(), at) - knots.begin();
  const auto right = std::clamp<std::size_t>(static_cast<std::size_t>(above), 1, knots.size() - 1);
  const double slope = (values[right] - values[right - 1]) / (knots[right] - knots[right - 1]);
  return values[right - 1] + slope * (at - knots[right - 1]);
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
