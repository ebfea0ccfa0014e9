/// Default runs: are they right, do they say so, and what are their standard errors worth?
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include <fmt/format.h>

#include <poise/marginals.hpp>
#include <poise/report.hpp>
#include "laws/checks.hpp"
#include "laws/embedded.hpp"
#include "laws/kinds.hpp"

namespace poise::laws {

namespace {

/// A marginal is right within this, or within so many of its standard errors.
constexpr double kRight = 0.06;
constexpr double kStandardErrors = 5.0;
/// A warning is false where all marginals are within this, or where all errors that the run states are.
constexpr double kClose = 0.02;
/// The mean of log p is off by more than this part of its standard deviation, and by so many standard errors.
constexpr double kEnergy = 0.5;
/// z values are looked at where the probability is far enough from 0 and 1 to make the mean of some hundred draws
/// normal.
constexpr double kRare = 0.02;

struct Estimate {
  double value = 0.0;
  double error = 0.0;  ///< 0 where nothing is said
};

/// Frequencies of levels among the draws of the first variables, with the errors that the report states.
std::vector<Estimate> estimates(const RunResult& result, const Report& report, const Marginals& shape) {
  std::vector<Estimate> found(shape.values.size());
  const std::size_t n = result.layout.variables;
  const std::size_t draws = result.trace.chains * result.trace.draws;
  const auto level_of = [&](std::int8_t label) {
    Value level = 0;
    while (result.layout.label(level) != label) ++level;
    return level;
  };
  for (std::size_t d = 0; d < draws; ++d) {
    for (Index i = 0; i < shape.num_variables(); ++i) {
      found[shape.start[i] + level_of(result.trace.x[d * n + i])].value += 1.0 / static_cast<double>(draws);
    }
  }
  if (!report.variables) return found;
  for (const VariableRow& row : report.variables->rows) {
    if (row.variable >= shape.num_variables() || std::isnan(row.mcse)) continue;
    const std::size_t first = shape.start[row.variable];
    if (row.level) {
      found[first + level_of(*row.level)].error = row.mcse;
      continue;
    }
    // The series is the variable itself, seen at two labels: one frequency is as uncertain as the other.
    std::vector<std::size_t> seen;
    for (std::size_t k = first; k < shape.start[row.variable + 1]; ++k) {
      if (found[k].value > 0.0) seen.push_back(k);
    }
    if (seen.size() != 2) continue;
    const double apart = result.layout.label(static_cast<Value>(seen[1] - first)) -
                         result.layout.label(static_cast<Value>(seen[0] - first));
    for (const std::size_t k : seen) found[k].error = row.mcse / apart;
  }
  return found;
}

struct Verdict {
  bool right = true;
  bool close = true;
  bool energy = true;
  bool lucky = false;
  double off = 0.0;    ///< the largest
  double error = 0.0;  ///< the largest that is stated
  std::string worst;   ///< the marginal that is off the most
};

Verdict judge(const std::vector<Estimate>& found, const Report& report, const Known& known) {
  Verdict verdict;
  for (Index i = 0; i < known.marginals.num_variables(); ++i) {
    for (std::size_t level = 0; level < known.marginals.of(i).size(); ++level) {
      const Estimate& estimate = found[known.marginals.start[i] + level];
      const double off = std::abs(estimate.value - known.marginals.of(i)[level]);
      if (off > kRight && off > kStandardErrors * estimate.error) verdict.right = false;
      if (off > kClose) verdict.close = false;
      verdict.error = std::max(verdict.error, estimate.error);
      if (off <= verdict.off) continue;
      verdict.off = off;
      verdict.worst = fmt::format("P(x[{}] = {}) is {:.3f} (+- {:.3f}), exact {:.3f}", i, level, estimate.value,
                                  estimate.error, known.marginals.of(i)[level]);
    }
  }
  verdict.lucky = verdict.right && (verdict.error > kRight || (report.variables && report.variables->frozen > 0));
  if (known.mean_log_prob) {
    const SeriesSummary& log_prob = report.monitors.front().summary;
    const double off = std::abs(log_prob.mean - *known.mean_log_prob);
    const double error = std::isnan(log_prob.mcse) ? 0.0 : log_prob.mcse;
    // Rounding alone moves the mean of a distribution that is flat.
    verdict.energy = off <= std::max(1e-6, kEnergy * known.sd_log_prob) || off <= kStandardErrors * error;
  }
  return verdict;
}

/// z values of what a right and silent run states, by what they are of.
std::map<std::string, Errors> errors_of(const RunResult& result, const std::vector<Estimate>& found, const Known& known,
                                        const Report& report) {
  std::map<std::string, Errors> errors;
  const auto count = [&](const char* name, double value, double error, double truth) {
    if (truth < kRare || truth > 1.0 - kRare || !(error > 0.0)) return;
    errors[name].add((value - truth) / error);
  };
  std::optional<RunMarginals> averaged;
  if (!result.rao_blackwell.empty()) averaged = marginals_of(result, report);
  for (Index i = 0; i < known.marginals.num_variables(); ++i) {
    if (result.layout.is_observed(i)) continue;
    const std::span<const double> truth = known.marginals.of(i);
    for (std::size_t level = 0; level < truth.size(); ++level) {
      const Estimate& estimate = found[known.marginals.start[i] + level];
      count(level == 0 ? "draws, level 0" : "draws, other levels", estimate.value, estimate.error, truth[level]);
      if (!averaged) continue;
      count(level == 0 ? "Rao-Blackwell, level 0" : "Rao-Blackwell, other levels", averaged->marginals.of(i)[level],
            averaged->mcse.of(i)[level], truth[level]);
    }
  }
  const SeriesSummary& log_prob = report.monitors.front().summary;
  if (known.mean_log_prob && log_prob.status == SeriesStatus::ok && log_prob.mcse > 1e-9) {
    errors["log p"].add((log_prob.mean - *known.mean_log_prob) / log_prob.mcse);
  }
  return errors;
}

const char* name_of(const RunPlan& plan) {
  if (plan.exact_starts) return "exact";
  return plan.start == Start::uniform ? "uniform" : plan.start == Start::zeros ? "zeros" : "dispersed";
}

nlohmann::json record(const Trial& trial, const RunPlan& plan, const Report& report, const Verdict& verdict) {
  nlohmann::json codes = nlohmann::json::array();
  for (const Warning& warning : report.warnings) codes.push_back(warning.code);
  double ess = report.variables ? report.variables->ess.min : std::nan("");
  for (const NamedSummary& monitor : report.monitors) ess = std::fmin(ess, monitor.summary.ess);
  return {{"model", trial.number},
          {"way", plan.way},
          {"kind", plan.kind},
          {"sampler", plan.sampler},
          {"start", name_of(plan)},
          {"drawn_by", report.sampler},
          {"right", verdict.right},
          {"close", verdict.close},
          {"lucky", verdict.lucky},
          {"codes", codes},
          {"ess", ess},
          {"off", verdict.off},
          {"error", verdict.error},
          {"energy", verdict.energy}};
}

}  // namespace

RunOutcome try_run(const Trial& trial, const Model& model, const Known& known, const RunPlan& plan, Tally& tally) {
  RunOptions options;
  options.seed = trial.run_seed();
  options.threads = 1;
  options.start = plan.exact_starts ? Start::given : plan.start;
  options.given = plan.given;
  options.rao_blackwell = model.fibers() == nullptr;  // of user code that would be most of the work
  RunResult result;
  const bool is_default = plan.sampler == "auto" && !plan.exact_starts;
  const std::string again = trial.again(plan.sampler);
  try {
    result = run(model, parse_sampler(plan.sampler), options);
  } catch (const InputError& error) {
    if (plan.may_refuse) return {};
    trial.report(tally, {"run", plan.kind, plan.sampler, fmt::format("{}: {}", plan.way, error.what()), again});
    return {};
  } catch (const std::exception& error) {
    trial.report(tally, {"run", plan.kind, plan.sampler, fmt::format("{}: {}", plan.way, error.what()), again});
    return {};
  }
  const Report report = make_report(result);
  const bool warned = !report.warnings.empty();
  const std::vector<Estimate> found = estimates(result, report, known.marginals);
  const Verdict verdict = judge(found, report, known);
  Alarms& alarms = tally.alarms[{plan.way, plan.kind, plan.sampler, name_of(plan)}];
  ++(verdict.right ? (warned ? alarms.right_warned : alarms.right_silent)
                   : (warned ? alarms.wrong_warned : alarms.wrong_silent));
  alarms.lucky += warned && verdict.lucky ? 1 : 0;
  const bool sure = verdict.right && !verdict.lucky && verdict.error < kClose;
  alarms.sure += sure ? 1 : 0;
  alarms.sure_warned += sure && warned ? 1 : 0;
  tally.records.push_back(record(trial, plan, report, verdict));
  if (verdict.right && verdict.close) {
    ++alarms.close;
    alarms.close_warned += warned ? 1 : 0;
    alarms.close_lucky += warned && verdict.lucky ? 1 : 0;
    for (const auto& warning : report.warnings) ++tally.false_alarms[warning.code];
  }
  // Chains that are all in the same one of several parts have no valid error; such runs are named instead.
  if (!warned && verdict.right) {
    nlohmann::json& squares = tally.records.back()["z2"] = nlohmann::json::object();
    for (const auto& [name, errors] : errors_of(result, found, known, report)) {
      tally.errors[name].add(errors);
      squares[name] = errors.mean_square();
    }
  }
  if (!warned && verdict.right && !verdict.energy) ++alarms.energy_silent;
  if (!verdict.right && !warned) {
    trial.report(tally,
                 {"silently wrong", plan.kind, plan.sampler,
                  fmt::format("{}, {} starts, drawn by {}: {}", plan.way, name_of(plan), report.sampler, verdict.worst),
                  again, is_default});
  } else if (!verdict.energy && !warned) {
    trial.report(tally, {"silently wrong log p", plan.kind, plan.sampler,
                         fmt::format("{}, {} starts, drawn by {}: mean {:.4f}, exact {:.4f}", plan.way, name_of(plan),
                                     report.sampler, report.monitors.front().summary.mean, *known.mean_log_prob),
                         again, is_default});
  }
  return {report.sampler, !verdict.right && !warned};
}

void check_runs(const Trial& trial, Tally& tally) {
  const SmallModel& small = *trial.small;
  const Known& known = trial.truth->known;
  const auto plan = [&](const char* way, const std::string& sampler, Start start) {
    return RunPlan{way, small.kind, sampler, start};
  };
  for (const std::string& name : trial.samplers) {
    if (!is_plain(name)) continue;
    if (name == "auto") {
      for (const Start start : {Start::uniform, Start::dispersed}) {
        const RunOutcome outcome = try_run(trial, small.model, known, plan("as shipped", name, start), tally);
        if (!outcome.used.starts_with("exact")) continue;
        Known hidden = known;
        hidden.mean_log_prob.reset();  // user code has the constants that built-in models leave out
        RunPlan without = plan("without exact", name, start);
        without.may_refuse = true;  // nobody can say where user code with zeros is to begin
        (void)try_run(trial, hidden_in_user_code(small), hidden, without, tally);
      }
      continue;
    }
    RunPlan one =
        plan("as shipped", name, std::array{Start::uniform, Start::dispersed, Start::given}[trial.turn(name) % 3]);
    one.exact_starts = one.start == Start::given;
    if (one.exact_starts) one.given = exact_draws(*trial.truth, RunOptions().chains, trial.run_seed());
    (void)try_run(trial, small.model, known, one, tally);
  }
  const std::optional<Embedded> wide = embed(small, trial.truth->known);
  if (!wide) return;
  const Start start = trial.number % 2 == 0 ? Start::uniform : Start::dispersed;
  if (trial.wants("auto")) (void)try_run(trial, wide->model, wide->known, plan("embedded", "auto", start), tally);
  const std::array<const char*, 5> others = {"gibbs", "lsb", "temper", "dlmc", "lb"};
  const std::string other = others[trial.number / kinds().size() % others.size()];
  if (trial.wants(other)) (void)try_run(trial, wide->model, wide->known, plan("embedded", other, start), tally);
}

}  // namespace poise::laws
