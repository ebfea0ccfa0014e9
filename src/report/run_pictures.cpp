/// Traces, rank histograms and autocorrelations as plots.
#include "report/run_pictures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include <poise/image.hpp>
#include <poise/plot.hpp>
#include "report/svg.hpp"
#include "report/tempering.hpp"

namespace poise {

namespace {

constexpr std::size_t kMostChains = 8;            // drawn; more lines cannot be told apart
constexpr std::size_t kMostMonitors = 6;          // drawn
constexpr std::size_t kPoints = 300;              // of a line, each a range of draws
constexpr std::size_t kBins = 20;                 // of a rank histogram
constexpr std::size_t kMostRanked = 1U << 20;     // values that are sorted
constexpr std::size_t kLongestSeries = 1U << 17;  // draws of which autocorrelations are computed
constexpr std::size_t kMostLags = 200;
constexpr double kPlotWidth = 420;
constexpr double kPlotHeight = 270;

Plot empty_plot(std::string title, std::string x_label, std::string y_label) {
  Plot plot;
  plot.title = std::move(title);
  plot.x_label = std::move(x_label);
  plot.y_label = std::move(y_label);
  plot.width = kPlotWidth;
  plot.height = kPlotHeight;
  plot.legend = Legend::none;
  return plot;
}

/// One line a chain. Of long chains each range of draws is drawn from its least to its largest value, so that no
/// excursion is lost.
Plot trace_plot(const std::string& name, ChainsView values, std::size_t stride) {
  Plot plot = empty_plot(name, "draw", name);
  for (std::size_t c = 0; c < std::min(values.chains, kMostChains); ++c) {
    const std::span<const double> chain = values.chain(c);
    Series line{.line_width = 0.9};
    const auto add = [&](std::size_t draw, double value) {
      line.x.push_back(static_cast<double>(draw * stride));
      line.y.push_back(value);
    };
    if (chain.size() <= 2 * kPoints) {
      for (std::size_t draw = 0; draw < chain.size(); ++draw) add(draw, chain[draw]);
    } else {
      for (std::size_t k = 0; k < kPoints; ++k) {
        const std::size_t first = k * chain.size() / kPoints, last = (k + 1) * chain.size() / kPoints;
        const auto range = chain.subspan(first, last - first);
        const auto [least, most] = std::minmax_element(range.begin(), range.end());
        auto [left, right] = std::pair(least, most);
        if (right < left) std::swap(left, right);
        add(first + static_cast<std::size_t>(left - range.begin()), *left);
        add(first + static_cast<std::size_t>(right - range.begin()), *right);
      }
    }
    plot.series.push_back(std::move(line));
  }
  return plot;
}

/// How the draws of each chain are spread over the ranks of all draws together: 1 everywhere where chains agree. Equal
/// values share their ranks evenly.
Plot rank_plot(ChainsView values) {
  Plot plot = empty_plot("ranks", "rank among the draws of all chains", "relative frequency");
  plot.y_min = 0.0;
  const std::size_t step = (values.size() + kMostRanked - 1) / kMostRanked;
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < values.size(); k += std::max<std::size_t>(step, 1)) order.push_back(k);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values.data[a] < values.data[b]; });
  const auto count = static_cast<double>(order.size());
  std::vector<std::array<double, kBins>> share(values.chains);
  std::vector<double> drawn(values.chains, 0.0);
  for (auto& bins : share) bins.fill(0.0);
  for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
    while (last < order.size() && !(values.data[order[first]] < values.data[order[last]])) ++last;
    const double from = static_cast<double>(first) / count * kBins, to = static_cast<double>(last) / count * kBins;
    for (std::size_t k = first; k < last; ++k) {
      const std::size_t chain = order[k] / values.draws;
      drawn[chain] += 1.0;
      for (auto bin = static_cast<std::size_t>(from); bin < kBins && static_cast<double>(bin) < to; ++bin) {
        const double low = std::max(from, static_cast<double>(bin)), high = std::min(to, static_cast<double>(bin + 1));
        share[chain][bin] += std::max(0.0, high - low) / (to - from);
      }
    }
  }
  for (std::size_t c = 0; c < std::min(values.chains, kMostChains); ++c) {
    Series line{.line_width = 1.4};
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      const double height = share[c][bin] / drawn[c] * kBins;
      for (const std::size_t edge : {bin, bin + 1}) {
        line.x.push_back(static_cast<double>(edge) / kBins);
        line.y.push_back(height);
      }
    }
    plot.series.push_back(std::move(line));
  }
  Series even{.x = {0.0, 1.0}, .y = {1.0, 1.0}, .color = "#222222", .line_width = 1.0, .dash = "4 3"};
  plot.series.push_back(std::move(even));
  return plot;
}

/// Autocorrelations up to where those of all drawn chains have fallen, and a half more.
Plot autocorrelation_plot(ChainsView values, std::size_t stride) {
  Plot plot = empty_plot("autocorrelation", "lag in draws", "autocorrelation");
  plot.y_max = 1.05;
  constexpr double kFallen = 0.05;
  constexpr std::size_t kFewestLags = 20;
  std::vector<std::vector<double>> found;
  std::size_t lags = kFewestLags;
  for (std::size_t c = 0; c < std::min(values.chains, kMostChains); ++c) {
    const std::span<const double> chain = values.chain(c);
    found.push_back(autocorrelation(chain.last(std::min(chain.size(), kLongestSeries))));
    const auto& all = found.back();
    const auto fallen = std::find_if(all.begin(), all.end(), [](double rho) { return rho < kFallen; });
    if (!all.empty() && std::isfinite(all.front())) {
      lags = std::max(lags, static_cast<std::size_t>(fallen - all.begin()) * 3 / 2);
    }
  }
  lags = std::min({lags, kMostLags, values.draws - 1});
  for (const std::vector<double>& all : found) {
    Series line{.line_width = 1.2};
    for (std::size_t lag = 0; lag <= lags; ++lag) {
      line.x.push_back(static_cast<double>(lag * stride));
      line.y.push_back(all[lag]);
    }
    plot.series.push_back(std::move(line));
  }
  plot.series.push_back(
      {.x = {0.0, static_cast<double>(lags * stride)}, .y = {0.0, 0.0}, .color = "#222222", .line_width = 0.8});
  return plot;
}

HtmlFigure monitor_figure(const std::string& name, ChainsView values, std::size_t stride) {
  HtmlFigure figure{
      .caption = fmt::format("{}: its values along the run, how the draws of each chain are spread over the "
                             "ranks of all draws (evenly, at 1, where chains agree), and its "
                             "autocorrelation. One line a chain",
                             name),
      .panels = {},
      .columns = 3};
  figure.caption += values.chains > kMostChains
                        ? fmt::format("; the first {} of {} chains.", kMostChains, values.chains)
                        : std::string(".");
  for (const Plot& plot : {trace_plot(name, values, stride), rank_plot(values), autocorrelation_plot(values, stride)}) {
    figure.panels.push_back(render_svg(plot));
  }
  return figure;
}

}  // namespace

std::vector<HtmlFigure> run_figures(const Report& report, const Trace& trace) {
  std::vector<HtmlFigure> figures;
  constexpr std::size_t kFewestDraws = 4;
  for (std::size_t k = 0; k < trace.monitors.size() && figures.size() < kMostMonitors; ++k) {
    // A distance from a random state is a check of mixing, not something one wants to see.
    if (trace.monitor_names[k] == "hamming" || trace.draws < kFewestDraws) continue;
    figures.push_back(monitor_figure(trace.monitor_names[k], {trace.monitors[k].data(), trace.chains, trace.draws},
                                     std::max<std::size_t>(trace.stride, 1)));
  }
  if (!report.knots.empty()) {
    figures.push_back({.caption = "The balancing function that the chains sampled with, beside four fixed ones.",
                       .panels = {balance_plot(report.knots, report.log_phi)},
                       .columns = 2});
  }
  if (report.tempering && !report.tempering->acceptance.empty()) {
    figures.push_back({.caption = "The ladder of temperatures: how often neighbours swap their states, and the way of "
                                  "the replicas through it.",
                       .panels = {tempering_plot(*report.tempering)},
                       .columns = 1});
  }
  return figures;
}

HtmlFigure mean_figure(const Report& report) {
  HtmlFigure figure{.caption = "The mean of every site, from blue (the lower value) to orange (the higher one).",
                    .panels = {},
                    .columns = 2};
  if (!report.variables || report.lattice_rows == 0 || report.lattice_columns == 0) return figure;
  Grid grid{report.lattice_rows, report.lattice_columns, std::vector<double>(report.num_variables)};
  double low = 0.0, high = 1.0;
  for (const VariableRow& row : report.variables->rows) {
    if (row.level) return figure;
    grid.values[row.variable] = row.mean;
    low = std::min(low, row.mean < 0.0 ? -1.0 : 0.0);
  }
  constexpr std::size_t kLongestSide = 512;
  const std::size_t side = std::max(grid.rows, grid.columns);
  const Grid shown = reduce(grid, (side + kLongestSide - 1) / kLongestSide);
  const Image image = paint(shown, low, high, diverging_color);
  figure.panels.push_back(render_panel({.title = "",
                                        .pictures = {{image, fmt::format("mean, {:.0f} to {:.0f}", low, high)}},
                                        .per_row = 1,
                                        .side = 380}));
  return figure;
}

std::string run_plot(const Report& report, const Trace& trace) {
  std::vector<std::string> rows;
  for (const HtmlFigure& figure : run_figures(report, trace)) rows.push_back(svg::beside(figure.panels));
  if (rows.empty()) {
    Plot plot = empty_plot("no draws to show", "draw", "");
    rows.push_back(render_svg(plot));
  }
  return svg::stacked(rows, fmt::format("{} by {}", report.model, report.sampler));
}

}  // namespace poise
