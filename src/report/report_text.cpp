/// The report of a run as text.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <poise/report.hpp>
#include "report/tempering.hpp"
#include "report/text.hpp"

namespace poise {

namespace {

using text::Table;

constexpr std::size_t kShowAll = 20;  // variables; of more only the worst are shown
constexpr std::size_t kShowWorst = 10;

/// Words in place of numbers that would flatter: a series that never changed has no perfect score.
std::string status_text(SeriesStatus status) {
  switch (status) {
    case SeriesStatus::non_finite: return "not finite";
    case SeriesStatus::too_short: return "too short";
    default: return std::string(to_string(status));
  }
}

/// The sampler, and if `auto` chose it, why.
std::string sampler_text(const Report& report, std::size_t width) {
  const std::string what =
      report.choice ? fmt::format("{}, chosen by auto: {}", report.sampler, report.choice->reason) : report.sampler;
  return text::wrap(what, "sampler     ", width);
}

std::string acceptance_text(const Report& report) {
  if (report.draws == 0) return "-";
  std::string out = fmt::format("{:.3f}", report.acceptance_rate);
  if (report.evals && report.evals->changes > 0 && report.steps > 0) {
    const double changes = static_cast<double>(report.evals->changes) / static_cast<double>(report.steps);
    out += fmt::format(", {} changes a step", text::number(changes, 3));
  }
  return out;
}

std::string header_text(const Report& report, std::size_t width) {
  const double rate = static_cast<double>(report.steps) / report.sampling_seconds;
  std::string draws = fmt::format("{} x {}", text::plural(report.chains, "chain"), text::plural(report.draws, "draw"));
  if (report.thin > 0) draws += fmt::format(", one every {}", text::every(report.thin, "step"));
  draws += fmt::format("; seed {}", report.seed);
  std::string time = "not known";
  if (std::isfinite(report.sampling_seconds)) {
    time = fmt::format("warm-up {}, sampling {}", text::duration(report.warmup_seconds),
                       text::duration(report.sampling_seconds));
    if (report.steps > 0) time += fmt::format(", {} steps/s", text::rate(rate));
  }
  const std::string ladder = report.tempering ? tempering_text(*report.tempering, width) : "";
  return text::wrap(report.model, "model       ", width) +
         text::wrap(report.observed > 0 ? fmt::format("{}, {} of them observed", report.num_variables, report.observed)
                                        : fmt::format("{}", report.num_variables),
                    "variables   ", width) +
         sampler_text(report, width) + text::wrap(draws, "draws       ", width) +
         text::wrap(time, "time        ", width) + text::wrap(acceptance_text(report), "acceptance  ", width) + ladder;
}

std::string best_text(const BestDraw& best) {
  return fmt::format("{} {:.10g} (chain {}, draw {}, counted from 0)",
                     best.objective.empty() ? "log_prob" : best.objective, best.value, best.chain, best.draw);
}

std::string monitors_text(const Report& report, std::size_t width) {
  const bool words = std::any_of(report.monitors.begin(), report.monitors.end(),
                                 [](const NamedSummary& row) { return row.summary.status != SeriesStatus::ok; });
  std::vector<std::string> titles{"monitor", "mean", "sd", "mcse", "ess", "ess_tail", "r_hat", "ess/s"};
  if (words) titles.emplace_back("<status");
  Table table(titles);
  for (const auto& [name, summary] : report.monitors) {
    table.add({name, text::mean(summary.mean, summary.mcse), text::number(summary.sd, 3), text::number(summary.mcse, 2),
               text::count(summary.ess), text::count(summary.ess_tail), text::r_hat(summary.r_hat),
               text::count(summary.ess / report.sampling_seconds), words ? status_text(summary.status) : ""});
  }
  return table.text(width);
}

std::string observables_text(const Report& report, std::size_t width) {
  Table table({"observable", "value", "error", "tau"});
  for (const Observable& one : report.observables) {
    table.add({one.name, text::mean(one.value, one.error), text::number(one.error, 2), text::number(one.tau, 3)});
  }
  return table.text(width);
}

/// The heads of both lists of worst rows, each row once, lowest effective sample size first.
std::vector<VariableRow> worst_rows(const VariablesSummary& variables) {
  std::vector<VariableRow> worst;
  const auto add = [&](const std::vector<VariableRow>& list, std::size_t k) {
    if (k >= list.size() || worst.size() >= kShowWorst) return;
    const bool listed = std::any_of(worst.begin(), worst.end(), [&](const VariableRow& row) {
      return row.variable == list[k].variable && row.level == list[k].level;
    });
    if (!listed) worst.push_back(list[k]);
  };
  for (std::size_t k = 0; k < kShowWorst; ++k) {
    add(variables.worst_by_r_hat, k);
    add(variables.worst_by_ess, k);
  }
  std::stable_sort(worst.begin(), worst.end(), [](const VariableRow& a, const VariableRow& b) {
    return (std::isnan(a.ess) ? 0.0 : a.ess) < (std::isnan(b.ess) ? 0.0 : b.ess);
  });
  return worst;
}

std::string variables_text(const Report& report, std::size_t width) {
  const VariablesSummary& variables = *report.variables;
  const bool all = variables.rows.size() <= kShowAll;
  std::string out;
  if (!all) {
    std::string counts = text::plural(variables.variables, "variable");
    const auto add = [&](std::size_t number, const char* word) {
      if (number > 0) counts += fmt::format(", {} {}", number, word);
    };
    add(variables.frozen, "frozen");
    add(variables.rare, "rarely changing");
    add(variables.constant, "constant");
    out += text::wrap(counts + ".", "", width) + "\n";
    Table quantiles({"quantiles", "min", "5 %", "median", "95 %", "max"});
    const auto add_row = [&](const char* name, const Quantiles& q, const auto& show) {
      quantiles.add({name, show(q.min), show(q.q05), show(q.median), show(q.q95), show(q.max)});
    };
    add_row("ess", variables.ess, text::count);
    add_row("r_hat", variables.r_hat, text::r_hat);
    out += quantiles.text(width) + "\n";
  }
  Table table({all ? "variable" : "worst ten\nby r_hat and ess", "mean", "mcse", "ess", "r_hat", "changes", "<status"});
  const VariableNames name{report.variable_names, report.level_names};
  for (const VariableRow& row : all ? variables.rows : worst_rows(variables)) {
    table.add({name(row), text::mean(row.mean, row.mcse), text::number(row.mcse, 2), text::count(row.ess),
               text::r_hat(row.r_hat), fmt::format("{}", row.transitions), status_text(row.status)});
  }
  out += table.text(width);
  if (variables.exact < variables.variables) {
    out +=
        text::wrap(fmt::format("ESS of {} variables, the worst and others evenly spaced, is that of these tables; of "
                               "the others it is estimated from batch means. R-hat is exact for all.",
                               variables.exact),
                   "", width);
  }
  return out;
}

}  // namespace

std::string report_text(const Report& report, std::size_t width) {
  std::string out = header_text(report, width);
  if (report.best) out += text::wrap(best_text(*report.best), "best        ", width);
  if (report.draws > 0) {
    out += '\n';
    out += monitors_text(report, width);
    if (!report.observables.empty()) out += '\n' + observables_text(report, width);
    if (report.variables) {
      out += '\n';
      out += variables_text(report, width);
    }
  }
  if (!report.certain.empty()) out += '\n' + text::wrap(report.certain, "note: ", width);
  return out + text::warnings(report.warnings, width);
}

}  // namespace poise
