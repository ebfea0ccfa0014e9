/// The comparison of samplers on one model, as a table and as JSON.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <poise/report.hpp>
#include "report/text.hpp"

namespace poise {

namespace {

/// A column of effective sample sizes, or of their ratio to a cost: more is better.
struct Column {
  std::string title;
  std::vector<double> values;  // a sampler each

  [[nodiscard]] std::string show(std::size_t row) const {
    const bool best = std::none_of(values.begin(), values.end(), [&](double other) { return other > values[row]; });
    const bool compared = values.size() > 1 && std::isfinite(values[row]);
    return text::count(values[row]) + (best && compared ? "*" : " ");
  }
};

std::vector<Column> columns_of(std::span<const Report> reports) {
  std::vector<Column> columns;
  const auto add = [&](std::string title, const auto& value) {
    Column column{std::move(title), {}};
    for (const Report& report : reports) column.values.push_back(value(report));
    columns.push_back(std::move(column));
  };
  const auto& monitors = reports.front().monitors;
  for (std::size_t k = 0; k < monitors.size(); ++k) {
    if (monitors[k].name == "hamming") continue;
    add("ess\n" + monitors[k].name + " ", [&](const Report& report) { return report.monitors[k].summary.ess; });
  }
  add("ess\ncombined ", combined_ess);
  add("ess per\nsecond ", [](const Report& r) { return combined_ess(r) / r.sampling_seconds; });
  add("per 1000\nevals ", [](const Report& r) {
    return 1000 * combined_ess(r) / (r.evals ? static_cast<double>(r.evals->of_target()) : std::nan(""));
  });
  add("per 1000\nupdates ", [](const Report& r) {
    return 1000 * combined_ess(r) / (r.updates ? static_cast<double>(*r.updates) : std::nan(""));
  });
  return columns;
}

/// R-hat of the monitor that has the largest.
double worst_r_hat(const Report& report) {
  double worst = std::nan("");
  for (const auto& [name, summary] : report.monitors) worst = std::fmax(worst, summary.r_hat);
  return worst;
}

/// What all runs have in common.
std::string budget_text(std::span<const Report> reports, std::size_t width) {
  const Report& first = reports.front();
  const bool same_draws =
      std::all_of(reports.begin(), reports.end(), [&](const Report& report) { return report.draws == first.draws; });
  const bool same_thin =
      std::all_of(reports.begin(), reports.end(), [&](const Report& report) { return report.thin == first.thin; });
  std::string budget = text::plural(first.chains, "chain");
  if (same_draws) budget += fmt::format(" x {}", text::plural(first.draws, "draw"));
  if (same_thin) budget += fmt::format(", one every {}", text::every(first.thin, "step"));
  if (!same_thin) budget += ", one every sweep";
  return text::wrap(first.model, "model       ", width) +
         text::wrap(fmt::format("{}", first.num_variables), "variables   ", width) +
         text::wrap(fmt::format("{}; seed {}", budget, first.seed), "budget      ", width);
}

}  // namespace

std::string comparison_text(std::span<const Report> reports, std::size_t width) {
  if (reports.empty()) return "";
  const std::vector<Column> columns = columns_of(reports);
  std::vector<std::string> titles{"sampler", "\naccept"};
  for (const Column& column : columns) titles.push_back(column.title);
  titles.insert(titles.end(), {"worst\nr_hat", "warm-up\nseconds"});
  text::Table table(titles);
  for (std::size_t k = 0; k < reports.size(); ++k) {
    const Report& report = reports[k];
    std::vector<std::string> row{report.sampler, fmt::format("{:.3f}", report.acceptance_rate)};
    for (const Column& column : columns) row.push_back(column.show(k));
    row.insert(row.end(), {text::r_hat(worst_r_hat(report)), text::number(report.warmup_seconds, 3)});
    table.add(std::move(row));
  }
  std::string out = budget_text(reports, width) + "\n" + table.text(width) + "\n";
  out += text::wrap(
      "The best of a column is marked *; effective sample sizes are themselves estimates, good to some percent. "
      "'Combined' is the geometric mean of those shown. An update is one chance of one variable to change: a step, or "
      "for gibbs, whose step is a sweep, as many as there are variables.",
      "", width);
  std::vector<Warning> all;
  for (const Report& report : reports) {
    for (const auto& [code, sentence] : report.warnings) {
      all.push_back({code, fmt::format("{}: {}", report.sampler, sentence)});
    }
  }
  return out + text::warnings(all, width);
}

}  // namespace poise
