/// Checks of levels as sentences: unvisited, stuck or certain.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "diagnose/effective_size.hpp"
#include "diagnose/model_checks.hpp"

namespace poise {

namespace {

/// False alarms: the fraction of faultless runs that warn. A level of probability p is missing from n independent draws
/// with probability exp(-p n), so p n has to be over the logarithm of tests / kMissedByChance.
constexpr double kMissedByChance = 1e-3;
/// Names in a sentence.
constexpr std::size_t kMostNames = 3;
/// A variable is called certain only if its other levels have a smaller probability.
constexpr double kMatters = diagnose_detail::worth_a_warning;

double expected_limit(const ModelChecks& checks) {
  return std::log(static_cast<double>(std::max<std::size_t>(1, checks.tested_levels)) / kMissedByChance);
}

/// The effective size of a variable where its series is known, and never over that of log p.
double ess_of_variable(const CheckedRun& run, Index variable) {
  double ess = run.ess();
  const auto& rows = run.variables.rows;
  auto row = std::lower_bound(rows.begin(), rows.end(), variable,
                              [](const VariableRow& one, Index i) { return one.variable < i; });
  for (; row != rows.end() && row->variable == variable; ++row) {
    if (std::isfinite(row->ess)) ess = std::min(ess, row->ess);
  }
  return ess;
}

/// Of a level where its series is known, or else of log p.
double ess_of_level(const CheckedRun& run, Index variable, std::int8_t level) {
  const auto& rows = run.variables.rows;
  auto row = std::lower_bound(rows.begin(), rows.end(), variable,
                              [](const VariableRow& one, Index i) { return one.variable < i; });
  for (; row != rows.end() && row->variable == variable; ++row) {
    if ((!row->level || *row->level == level) && std::isfinite(row->ess)) return row->ess;
  }
  return run.ess();
}

/// "a, b, c and 7 more".
std::string list_of(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t k = 0; k < std::min(names.size(), kMostNames); ++k) {
    out += (k == 0 ? "" : k + 1 == names.size() ? " and " : ", ") + names[k];
  }
  return names.size() > kMostNames ? out + fmt::format(" and {} more", names.size() - kMostNames) : out;
}

bool is_stuck(const ModelChecks& checks, const CheckedRun& run, const ModelChecks::Constant& one) {
  return one.least >= kMatters && one.least * run.ess() > expected_limit(checks);
}

bool is_certain(const ModelChecks& checks, const CheckedRun& run, const ModelChecks::Constant& one) {
  return !is_stuck(checks, run, one) && one.most < kMatters;
}

}  // namespace

std::string crossing_sampler(const ModelChecks& checks, const std::string& sampler) {
  if (checks.exact || checks.solved) return "exact";
  const bool has_moved_them = sampler.starts_with("wolff") || sampler == "sw";
  return checks.clusters && !has_moved_them ? "wolff" : "temper";
}

double CheckedRun::ess() const {
  const auto count = static_cast<double>(facts.chains * facts.draws);
  return monitors.empty() || !std::isfinite(monitors.front().summary.ess)
             ? count
             : std::min(count, monitors.front().summary.ess);
}

std::string variable_name(const VariableNames& names, Index variable) {
  return variable < names.variables.size() ? names.variables[variable] : fmt::format("x[{}]", variable);
}

std::vector<Warning> unvisited_warnings(const ModelChecks& checks, const CheckedRun& run) {
  std::vector<std::string> names;
  for (const ModelChecks::Unvisited& one : checks.unvisited) {
    if (one.probability < kMatters) break;  // and so are all that follow
    if (one.probability * ess_of_variable(run, one.variable) <= expected_limit(checks)) continue;
    VariableRow row{};
    row.variable = one.variable;
    row.level = one.level;
    names.push_back(
        fmt::format("{} (probability {}{:.2g})", run.facts.names(row), checks.exact ? "" : "about ", one.probability));
  }
  if (names.empty()) return {};
  return {{"unvisited",
           fmt::format("{} {} never drawn: chains do not reach all of the distribution, and marginals are wrong",
                       list_of(names), names.size() == 1 ? "was" : "were"),
           run.facts.better(INFINITY)}};
}

std::vector<Warning> exact_warnings(const ModelChecks& checks, const CheckedRun& run) {
  // The truth is known, so there is nothing to guess: such a marginal is wrong, and its error does not say so.
  constexpr double kErrors = 5.0;
  std::size_t count = 0;
  const ModelChecks::Off* worst = nullptr;
  for (const ModelChecks::Off& one : checks.off) {
    const double ess = ess_of_level(run, one.variable, one.level);
    const double error = std::sqrt(one.frequency * (1.0 - one.frequency) / std::max(1.0, ess));
    // A level that was never drawn has no error of its own.
    if (one.frequency <= 0.0 || one.frequency >= 1.0) continue;
    if (std::abs(one.frequency - one.probability) <= kErrors * error) continue;
    if (count++ == 0) worst = &one;
  }
  if (worst == nullptr) return {};
  VariableRow row{};
  row.variable = worst->variable;
  row.level = worst->level;
  return {
      {"disagreement",
       fmt::format("{}{} was drawn with frequency {:.2g}, but its probability is {:.2g}: chains do not reach all of "
                   "the distribution, and marginals are wrong",
                   run.facts.names(row), count > 1 ? fmt::format(" (and {} more)", count - 1) : "", worst->frequency,
                   worst->probability),
       run.facts.better(INFINITY)}};
}

std::vector<Warning> symmetry_warnings(const ModelChecks& checks, const CheckedRun& run) {
  if (checks.interchangeable == 0) return {};
  const double fair = 1.0 / static_cast<double>(checks.interchangeable);
  // A normal variable is beyond z with a probability under exp(-z^2 / 2). The errors are estimates: twice as many.
  const auto tests = static_cast<double>(std::max<std::size_t>(1, run.variables.rows.size()));
  const double errors = 2.0 * std::sqrt(2.0 * std::log(tests / kMissedByChance));
  std::string name;
  double farthest = kMatters, frequency = 0.0;
  for (const VariableRow& row : run.variables.rows) {
    if (!(row.ess >= ess_alarm) || (!row.level && checks.interchangeable > 2)) continue;
    const double span = row.level ? 1.0 : checks.high - checks.low;
    const double off = std::abs(row.mean - (row.level ? fair : 0.5 * (checks.low + checks.high))) / span;
    if (off < farthest || off * span < errors * row.mcse) continue;
    farthest = off;
    frequency = row.level ? row.mean : fair + off;
    name = variable_name(run.facts.names, row.variable);
  }
  if (name.empty()) return {};
  return {
      {"modes",
       fmt::format("Chains are in some of several equivalent modes: exchanging levels does not change the model, so "
                   "each has probability {:.3g}, but one of {} was drawn with frequency {:.3g}",
                   fair, name, frequency),
       run.facts.better(INFINITY)}};
}

std::vector<Warning> other_mode_warnings(const ModelChecks& checks, const CheckedRun& run) {
  if (!checks.other) return {};
  const ModelChecks::OtherMode& mode = *checks.other;
  VariableRow row{};
  row.variable = mode.variable;
  row.level = mode.level;
  return {{"modes",
           fmt::format("{} of {} chains from elsewhere stay where no draw is, and about as probable: {} has frequency "
                       "{:.2g} there, {:.2g} in the draws. The chains are in one of several modes, and marginals are "
                       "wrong",
                       mode.chains, mode.of, run.facts.names(row), mode.there, mode.here),
           run.facts.better(INFINITY)}};
}

std::vector<Warning> stuck_warnings(const ModelChecks& checks, const CheckedRun& run) {
  std::vector<std::string> names;
  double others = 0.0;
  std::vector<Index> settled;
  for (const ModelChecks::Constant& one : checks.constant) {
    if (is_stuck(checks, run, one)) {
      names.push_back(variable_name(run.facts.names, one.variable));
      others = std::max(others, one.least);
    } else if (!is_certain(checks, run, one)) {
      continue;
    }
    settled.push_back(one.variable);
  }
  if (!names.empty()) {
    return {{"stuck",
             fmt::format("{} never changed although other levels have a probability of {}{:.2g}: the chains are stuck, "
                         "and marginals are wrong",
                         list_of(names), checks.exact ? "up to " : "about ", others),
             run.facts.better(INFINITY)}};
  }
  if (!checks.elsewhere.empty()) {
    for (const ModelChecks::Elsewhere& one : checks.elsewhere) {
      names.push_back(variable_name(run.facts.names, one.variable));
    }
    const double gain = checks.elsewhere.front().gain;
    return {
        {"stuck",
         fmt::format("{} never changed, but a chain from elsewhere has other levels there, where log p is {:.2g} {} "
                     "its mean over the draws: the chains are in one of several modes, and marginals are wrong",
                     list_of(names), std::abs(gain), gain < 0.0 ? "below" : "above"),
         run.facts.better(INFINITY)}};
  }
  std::sort(settled.begin(), settled.end());
  for (const Index i : run.frozen) {
    if (!std::binary_search(settled.begin(), settled.end(), i)) names.push_back(variable_name(run.facts.names, i));
  }
  if (names.empty()) return {};
  return {{"stuck",
           fmt::format("{} never changed and could not, as zeros leave one level with the others as they were: unless "
                       "the model or its evidence determines that, the chains are stuck and marginals are wrong",
                       list_of(names)),
           run.facts.better(INFINITY)}};
}

bool is_determined(const ModelChecks& checks, const CheckedRun& run) {
  return !checks.constant.empty() && checks.elsewhere.empty() &&
         std::all_of(checks.constant.begin(), checks.constant.end(),
                     [&](const ModelChecks::Constant& one) { return is_certain(checks, run, one); }) &&
         std::all_of(run.monitors.begin(), run.monitors.end(),
                     [](const NamedSummary& monitor) { return monitor.summary.status == SeriesStatus::constant; });
}

std::string certain_variables(const ModelChecks& checks, const CheckedRun& run) {
  std::vector<std::string> names;
  double most = 0.0;
  for (const ModelChecks::Constant& one : checks.constant) {
    if (!checks.elsewhere.empty() || !is_certain(checks, run, one)) continue;
    names.push_back(variable_name(run.facts.names, one.variable));
    most = std::max(most, one.most);
  }
  if (names.empty()) return "";
  const std::string bound = most > 0.0 ? fmt::format("at most {:.1g}", most) : "0";
  if (checks.exact)
    return fmt::format("{} never changed and certain: other levels have probability {}", list_of(names), bound);
  return fmt::format("{} never changed: with the other variables as drawn, other levels have probability {}",
                     list_of(names), bound);
}

}  // namespace poise
