/// Monitors, variables and warnings of a report.
#include "report/draws_report.hpp"

#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "report/tempering.hpp"

namespace poise {

namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

/// Beyond this many sites, whose names would take more memory than is polite, x[i] has to do.
constexpr Index kMostNames = Index{1} << 20;

/// Sites of a lattice are called by row and column, as ArviZ calls them.
std::vector<std::string> names_of(const VariableLayout& layout) {
  if (!layout.names.empty() || !layout.is_lattice() || layout.variables > kMostNames) return layout.names;
  std::vector<std::string> names;
  names.reserve(layout.variables);
  for (Index row = 0; row < layout.rows; ++row) {
    for (Index column = 0; column < layout.columns; ++column) names.push_back(fmt::format("x[{}, {}]", row, column));
  }
  return names;
}

/// Observed variables are constant because they should be.
void leave_out_observed(const VariableLayout& layout, VariablesSummary& summary) {
  std::size_t observed = 0;
  for (Index i = 0; i < layout.variables; ++i) observed += layout.is_observed(i) ? 1 : 0;
  if (observed == 0) return;
  std::erase_if(summary.rows, [&](const VariableRow& row) { return layout.is_observed(row.variable); });
  summary.variables -= observed;
  summary.constant -= observed;
}

}  // namespace

void add_layout(Report& report, const VariableLayout& layout) {
  report.num_variables = layout.variables;
  report.variable_names = names_of(layout);
  report.level_names = layout.level_names;
  for (Index i = 0; i < layout.variables; ++i) report.observed += layout.is_observed(i) ? 1 : 0;
}

void add_monitors(Report& report, const Trace& trace) {
  for (std::size_t k = 0; k < trace.monitor_names.size(); ++k) {
    const ChainsView series{trace.monitors[k].data(), trace.chains, trace.draws};
    SeriesSummary summary{kUndefined, kUndefined, kUndefined, kUndefined,
                          kUndefined, kUndefined, 0,          SeriesStatus::too_short};
    if (series.size() > 0) summary = summarize(series);
    report.monitors.push_back({trace.monitor_names[k], summary});
  }
}

void add_variables(Report& report, ColumnSource& draws, const VariableLayout& layout, unsigned threads) {
  report.variables = summarize_variables(draws, {.threads = threads, .worst = 10});
  leave_out_observed(layout, *report.variables);
}

void add_variables(Report& report, const Trace& trace, const VariableLayout& layout, unsigned threads) {
  if (trace.x.empty()) return;
  report.variables = summarize_variables({trace.x.data(), trace.chains, trace.draws, layout.variables},
                                         {.threads = threads, .worst = 10});
  leave_out_observed(layout, *report.variables);
}

void DrawSums::add(const Trace& part) {
  accepted_.resize(part.chains, 0.0);
  for (std::size_t c = 0; c < part.chains; ++c) {
    for (std::size_t draw = 0; draw < part.draws; ++draw) {
      accepted_[c] += part.acceptance_rate[c * part.draws + draw];
      steps_ += static_cast<std::uint64_t>(part.n_steps[c * part.draws + draw]);
    }
  }
  draws_ += part.draws;
}

double DrawSums::mean_acceptance() const {
  const double sum = std::accumulate(accepted_.begin(), accepted_.end(), 0.0);
  return draws_ > 0 ? sum / static_cast<double>(draws_ * accepted_.size()) : 0.0;
}

void add_warnings(Report& report, bool ended) {
  if (report.draws == 0) {
    report.warnings.push_back(
        fmt::format("{}, so there is nothing to summarise; give the run more time.",
                    report.interrupted ? "The run was interrupted before its first draw" : "No draw was recorded"));
    return;
  }
  if (report.interrupted) {
    report.warnings.push_back(
        fmt::format("The run was interrupted after {} draws per chain; they are kept, but fewer than were asked for.",
                    report.draws));
  }
  if (!ended) {
    report.warnings.push_back(fmt::format(
        "The run has not ended or was killed; {} draws per chain are complete, and its time and cost are not known.",
        report.draws));
  }
  if (!report.frozen.empty()) {
    const Index first = report.frozen.front();
    report.warnings.push_back(fmt::format(
        "{} of {} variables never changed and could not ({} for one): with the others as they were, zeros in the "
        "tables "
        "leave them one level; unless the evidence determines them, the chains are stuck in a part of the distribution "
        "and their marginals are wrong; use exact inference if it fits.",
        report.frozen.size(), report.num_variables - report.observed,
        first < report.variable_names.size() ? report.variable_names[first] : fmt::format("x[{}]", first)));
  }
  if (report.tempering) {
    const auto found = tempering_warnings(*report.tempering);
    report.warnings.insert(report.warnings.end(), found.begin(), found.end());
  }
  const VariablesSummary none;
  const auto found = warnings(report.monitors, report.variables ? *report.variables : none, report.chains,
                              {report.variable_names, report.level_names});
  report.warnings.insert(report.warnings.end(), found.begin(), found.end());
}

}  // namespace poise
