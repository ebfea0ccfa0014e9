/// Marginals of a run, level by level, with errors that hold also for levels that chains have hardly seen.
#include <algorithm>
#include <cmath>

#include <poise/marginals.hpp>
#include "inference/joint.hpp"

namespace poise {

namespace {

/// Ten visits, like ten excursions (see rare_transitions), leave a relative error of a third; with fewer the spread
/// among draws says little of what they have missed.
constexpr double kFewVisits = 10.0;
/// Fractions of steps are quotients of whole numbers; what sums of them differ from 0 or 1 by is rounding.
constexpr double kNothing = 1e-13;

/// The smaller of two effective sample sizes; one that is undefined does not count.
double smaller(double a, double b) { return std::isnan(a) || b < a ? b : a; }

}  // namespace

/// A variable that never moved has the size of log p; where that never moved either, each chain is one draw.
std::vector<double> effective_draws(const RunResult& result, const Report& report) {
  const double of_log_prob = report.monitors.empty() ? std::nan("") : report.monitors.front().summary.ess;
  std::vector<double> out(result.layout.variables, of_log_prob);
  if (report.variables) {
    for (const VariableRow& row : report.variables->rows) out[row.variable] = smaller(out[row.variable], row.ess);
  }
  const auto chains = static_cast<double>(result.trace.chains);
  const double draws = chains * static_cast<double>(result.trace.all_draws());
  for (double& size : out) size = std::clamp(std::isnan(size) ? chains : size, 1.0, std::max(draws, 1.0));
  return out;
}

double with_few_visits(double error, double visits, double draws) {
  return visits < kFewVisits ? std::hypot(error, std::sqrt(visits + 1.0) / draws) : error;
}

namespace {

/// From the entries of levels above 0 to all levels.
void spread(std::span<const double> entries, std::span<double> levels) {
  std::copy(entries.begin(), entries.end(), levels.begin() + 1);
  double rest = 1.0;
  for (const double entry : entries) rest -= entry;
  levels[0] = std::max(0.0, rest);
}

}  // namespace

RunMarginals marginals_of(const RunResult& result, const Report& report) {
  const VariableLayout& layout = result.layout;
  std::vector<Index> cardinalities;
  for (Index i = 0; i < layout.variables; ++i) cardinalities.push_back(layout.cardinality(i));
  RunMarginals out{Marginals(cardinalities), Marginals(cardinalities), Marginals(cardinalities)};
  const std::vector<double> draws = effective_draws(result, report);
  Index first = 0;
  bool missed = false;
  for (Index i = 0; i < layout.variables; ++i) {
    const Index moves = layout.levels(i) - 1;
    if (moves == 0) {
      const Index only = layout.is_observed(i) ? static_cast<Index>(layout.observed[i]) : 0;
      out.marginals.of(i)[only] = out.counted.of(i)[only] = 1.0;
      continue;
    }
    const auto entries = [&](const std::vector<double>& all) { return std::span(all).subspan(first, moves); };
    const std::span<double> means = out.marginals.of(i);
    const std::span<double> counted = out.counted.of(i);
    const std::span<double> errors = out.mcse.of(i);
    spread(entries(result.rao_blackwell), means);
    spread(entries(result.empirical_marginals), counted);
    const std::span<const double> of_moves = entries(result.rao_blackwell_mcse);
    std::copy(of_moves.begin(), of_moves.end(), errors.begin() + 1);
    errors[0] = result.rao_blackwell_mcse_of_zero[i];
    first += moves;
    // Where as many levels as zeros leave have shown some probability, the others have none, but for what rounding
    // makes of it.
    const auto shows = [&](Index k) { return k == 0 ? counted[0] > kNothing : means[k] > kNothing; };
    Index shown = 0;
    for (Index k = 0; k <= moves; ++k) shown += shows(k) ? 1 : 0;
    const Index possible = result.possible_levels.empty() ? moves + 1 : result.possible_levels[i];
    const auto is_ruled_out = [&](Index k) { return shown >= possible && !shows(k); };
    for (Index k = 0; k <= moves; ++k) {
      if (is_ruled_out(k) || possible == 1) {
        errors[k] = 0.0;
        continue;
      }
      const double rarer = std::clamp(std::min(counted[k], 1.0 - counted[k]), 0.0, 1.0);
      errors[k] = with_few_visits(errors[k], rarer * draws[i], draws[i]);
      missed = missed || counted[k] <= kNothing;
    }
  }
  // What may have been missed at a level that was never visited is missing at the others, and what other variables are
  // like there has not been seen.
  for (Index i = 0; missed && i < layout.variables; ++i) {
    for (double& error : out.mcse.of(i)) {
      if (error > 0.0) error = std::max(error, 1.0 / draws[i]);
    }
  }
  return out;
}

}  // namespace poise
