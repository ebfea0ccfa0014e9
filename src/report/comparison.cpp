/// The comparison of samplers on one model, as a table and as JSON.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <poise/plot.hpp>
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

/// What several samplers have in common when each has a warning of that code.
std::string_view cause(std::string_view code) {
  constexpr std::pair<std::string_view, std::string_view> kCauses[] = {{"rhat", "Chains disagree"},
                                                                       {"ess", "Few effective draws"},
                                                                       {"stuck", "Chains do not move"},
                                                                       {"short", "Too few draws to judge"},
                                                                       {"non_finite", "Draws are not finite"},
                                                                       {"one_chain", "Only one chain"},
                                                                       {"ladder", "Replicas do not travel"},
                                                                       {"interrupted", "Runs are not complete"},
                                                                       {"unvisited", "Levels were never drawn"},
                                                                       {"modes", "Chains miss equivalent modes"},
                                                                       {"disagreement", "Exact marginals disagree"},
                                                                       {"local_gain", "Local moves are lacking"}};
  const auto* found =
      std::find_if(std::begin(kCauses), std::end(kCauses), [&](auto& one) { return one.first == code; });
  return found == std::end(kCauses) ? code : found->second;
}

/// Where the table has the sampler that is advised, its row says what it does, so the advice is more draws; and none
/// where a row has no warning.
std::string advice(const Report& report, const Warning& warning, std::span<const Report> reports) {
  constexpr std::string_view option = "--sampler ";
  if (!warning.next.starts_with(option)) return warning.next;
  const std::string advised = warning.next.substr(option.size());
  const auto is_advised = [&](const Report& one) { return one.sampler.starts_with(advised); };
  if (std::none_of(reports.begin(), reports.end(), is_advised)) return warning.next;
  if (std::any_of(reports.begin(), reports.end(), [](const Report& one) { return one.warnings.empty(); })) return "";
  constexpr double kLonger = 4.0;
  return RunFacts{.draws = report.draws, .seconds = report.seconds}.longer(kLonger);
}

/// One warning per cause: in full where one sampler has it, else who has it and the strongest remedy.
std::vector<Warning> by_cause(std::span<const Report> reports) {
  std::vector<Warning> out;
  std::vector<std::vector<std::string>> samplers;
  for (const Report& report : reports) {
    for (Warning warning : report.warnings) {
      warning.next = advice(report, warning, reports);
      const auto same = std::find_if(out.begin(), out.end(), [&](auto& one) { return one.code == warning.code; });
      const auto k = static_cast<std::size_t>(same - out.begin());
      if (same == out.end()) {
        out.push_back(warning);
        samplers.push_back({report.sampler});
      } else if (samplers[k].back() != report.sampler) {
        samplers[k].push_back(report.sampler);
        // Another sampler is more than more draws, and these the more, the longer the number.
        if (std::pair(warning.next.size(), warning.next) > std::pair(same->next.size(), same->next)) {
          same->next = warning.next;
        }
      }
    }
  }
  for (std::size_t k = 0; k < out.size(); ++k) {
    const bool one = samplers[k].size() == 1;
    out[k].text = one ? fmt::format("{}: {}", samplers[k].front(), out[k].text)
                      : fmt::format("{} for {}", cause(out[k].code), fmt::join(samplers[k], ", "));
  }
  return out;
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
    const std::string mark = report.warnings.empty() ? "" : " !";
    std::vector<std::string> row{report.sampler + mark, fmt::format("{:.3f}", report.acceptance_rate)};
    for (const Column& column : columns) row.push_back(column.show(k));
    row.insert(row.end(), {text::r_hat(worst_r_hat(report)), text::number(report.warmup_seconds, 3)});
    table.add(std::move(row));
  }
  std::string out = budget_text(reports, width) + "\n" + table.text(width) + "\n";
  out += text::wrap(
      "The best of a column is marked *, a sampler with a warning !; effective sample sizes are themselves estimates, "
      "good to some percent. "
      "'Combined' is the geometric mean of those shown. An update is one chance of one variable to change: a step, or "
      "for gibbs, whose step is a sweep, as many as there are variables.",
      "", width);
  return out + text::warnings(by_cause(reports), width);
}

std::string comparison_plot(std::span<const Report> reports) {
  BarChart chart{.title = reports.empty() ? "no samplers" : reports.front().model,
                 .x_label = "effective samples a second, of log p and the model's statistics; ! marks a warning",
                 .bars = {}};
  for (const Report& report : reports) {
    chart.bars.push_back({.label = report.sampler,
                          .value = combined_ess(report) / report.sampling_seconds,
                          .error = 0,
                          .note = report.warnings.empty() ? "" : "!"});
  }
  return render_bars(chart);
}

}  // namespace poise
