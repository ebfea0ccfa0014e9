/// Lines, bands, balancing functions and tables of comparison.
#include "studies/figures.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/text.hpp"

namespace poise::reproduction {

Series line_of(const Contestant& contestant) {
  Series series;
  series.label = contestant.label;
  series.color = contestant.color;
  series.dash = contestant.dash;
  if (contestant.key == "lsb" || contestant.key == "flsb") series.line_width = 3.0;
  return series;
}

Series band_of(const Contestant& contestant, const BandData& data, std::size_t points) {
  Series series = line_of(contestant);
  const std::size_t stride = std::max<std::size_t>(1, (data.x.size() + points - 1) / points);
  for (std::size_t i = 0; i < data.x.size(); ++i) {
    if (i % stride != 0 && i + 1 != data.x.size()) continue;
    series.x.push_back(data.x[i]);
    series.y.push_back(data.mean[i]);
    if (data.error.empty()) continue;
    series.low.push_back(data.mean[i] - 2 * data.error[i]);
    series.high.push_back(data.mean[i] + 2 * data.error[i]);
  }
  return series;
}

std::string balance_figure(const std::string& title, const std::vector<LearnedFunction>& learned, FigureSize size) {
  constexpr double range = 6.0;
  constexpr int points = 96;
  Plot plot;
  plot.title = title;
  if (size == FigureSize::small) {
    plot.width = 380;
    plot.height = 270;
  }
  plot.x_label = "ratio t = p(x\u2032)/p(x)";
  plot.y_label = "g(t)/g(1)";
  plot.x_log = plot.y_log = true;
  plot.y_min = std::exp(-range);
  plot.y_max = std::exp(range);
  for (const LearnedFunction& function : learned) {
    Series series = line_of(*function.contestant);
    series.line_width = std::max(series.line_width, 2.2);
    for (int i = 0; i <= points; ++i) {
      const double u = range * (2.0 * i / points - 1.0);
      const double place = std::abs(u) / BalanceTable::kStep;
      const auto k = std::min(static_cast<std::size_t>(place), function.phi.size() - 2);
      const double phi = function.phi[k] + (place - static_cast<double>(k)) * (function.phi[k + 1] - function.phi[k]);
      series.x.push_back(std::exp(u));
      series.y.push_back(std::exp(u / 2 + phi));
    }
    plot.series.push_back(std::move(series));
  }
  struct Fixed {
    BalancingFunction::Kind function;
    const char* label;
    const char* dash;
  };
  for (const Fixed& fixed :
       {Fixed{BalancingFunction::Kind::max, "max{1, t}", "8 3 2 3"},
        Fixed{BalancingFunction::Kind::sqrt, "\u221at", ""}, Fixed{BalancingFunction::Kind::barker, "t/(1 + t)", "7 3"},
        Fixed{BalancingFunction::Kind::min, "min{1, t}", "2 3"}}) {
    Series series;
    series.label = fixed.label;
    series.color = "#9a9a9a";
    series.dash = fixed.dash;
    series.line_width = 1.3;
    const BalancingFunction balance(fixed.function);
    for (int i = 0; i <= points; ++i) {
      const double u = range * (2.0 * i / points - 1.0);
      series.x.push_back(std::exp(u));
      series.y.push_back(std::exp(balance.log_g(u) - balance.log_g(0.0)));
    }
    plot.series.push_back(std::move(series));
  }
  return render_svg(plot);
}

namespace {

/// The cell that a row of the table is measured by: the best of all contestants.
const Compared* best_of(const std::vector<Compared>& cells, bool larger_is_better) {
  const Compared* best = &cells[0];
  for (const Compared& cell : cells) {
    if (std::isnan(cell.ours.mean)) continue;
    const bool larger = cell.ours.mean > best->ours.mean;
    if (std::isnan(best->ours.mean) || larger == larger_is_better) best = &cell;
  }
  return best;
}

std::string cell_text(const Compared& cell, const Compared& best) {
  const bool differs = cell.published && differ(cell.ours, *cell.published);
  const bool is_best = &cell == &best || p_value(cell.ours, best.ours) >= kChance;
  const char* classes = differs && is_best ? " class=\"differs best\""
                        : differs          ? " class=\"differs\""
                        : is_best          ? " class=\"best\""
                                           : "";
  const std::string paper =
      cell.published ? fmt::format("<span class=\"paper\">paper {}</span>", text_of(*cell.published)) : "";
  return fmt::format("<td{}><span class=\"ours\">{}</span>{}</td>", classes, text_of(cell.ours), paper);
}

std::vector<std::string> csv_line(const std::string& row, const Contestant& contestant, const Compared& cell) {
  std::vector<std::string> line = {row,
                                   contestant.key,
                                   csv_number(cell.ours.mean),
                                   csv_number(cell.ours.sd),
                                   csv_number(cell.ours.error()),
                                   std::to_string(cell.ours.count)};
  if (!cell.published) {
    line.resize(line.size() + 5);
    return line;
  }
  line.insert(line.end(),
              {csv_number(cell.published->mean), csv_number(cell.published->sd), csv_number(cell.published->error()),
               csv_number(p_value(cell.ours, *cell.published)), differ(cell.ours, *cell.published) ? "yes" : "no"});
  return line;
}

}  // namespace

Table comparison_table(const ComparisonPlan& plan, const std::vector<Contestant>& contestants,
                       const std::vector<std::vector<Compared>>& cells) {
  Table table;
  table.name = plan.name;
  table.caption = plan.caption;
  table.columns = {"Sampler"};
  table.columns.insert(table.columns.end(), plan.cases.begin(), plan.cases.end());
  table.csv_columns = {
      "case",         "sampler",         "mean", "sd",     "standard_error", "chains", "published_mean",
      "published_sd", "published_error", "z",    "differs"};
  for (std::size_t k = 0; k < contestants.size(); ++k) {
    std::vector<std::string> row = {escaped(contestants[k].label)};
    for (std::size_t c = 0; c < plan.cases.size(); ++c) {
      row.push_back(cell_text(cells[c][k], *best_of(cells[c], plan.larger_is_better)));
    }
    table.rows.push_back(std::move(row));
  }
  for (std::size_t c = 0; c < plan.cases.size(); ++c) {
    for (std::size_t k = 0; k < contestants.size(); ++k) {
      table.csv_rows.push_back(csv_line(plan.cases[c], contestants[k], cells[c][k]));
    }
  }
  return table;
}

}  // namespace poise::reproduction
