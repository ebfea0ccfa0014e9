/// Warnings: diagnostics as sentences that name what to do next.
#include <cmath>

#include <fmt/format.h>

#include <poise/diagnose.hpp>

namespace poise {
namespace {

/// 1.013, but never a limit it exceeds: 1.0104 is "1.0104", not "1.01".
std::string show_r_hat(double r_hat) {
  if (std::isinf(r_hat)) return "infinite";
  return r_hat < 1.1 ? fmt::format("{:.4f}", r_hat) : fmt::format("{:.4g}", r_hat);
}

std::string more_draws(double ess, double wanted) {
  const double factor = std::ceil(wanted / ess);
  return factor > 1 && factor <= 1000 ? fmt::format("take about {:.0f} times as many draws", factor)
                                      : std::string("take many more draws or try another kernel");
}

/// All that is wrong with one monitor, most serious first.
void add_monitor(const NamedSummary& monitor, std::size_t chains, std::vector<Warning>& out) {
  const auto& [name, summary] = monitor;
  switch (summary.status) {
    case SeriesStatus::non_finite:
      out.push_back(
          {"non_finite",
           fmt::format(
               "{0}: some draws are infinite or not a number, so it has no mean or error; start the chains where the "
               "probability is positive and lengthen the warm-up.",
               name)});
      return;
    case SeriesStatus::constant:
      out.push_back({"constant", fmt::format("{0}: it never changed in any chain, so nothing can be said of its "
                                             "convergence; if it should vary, check the "
                                             "acceptance rate and try smaller moves.",
                                             name)});
      return;
    case SeriesStatus::frozen:
      out.push_back(
          {"stuck",
           fmt::format(
               "{0}: no chain ever moved, and they stand at different values, so the draws only show where the chains "
               "started; check the acceptance rate and try another kernel.",
               name)});
      return;
    case SeriesStatus::too_short:
      out.push_back(
          {"short",
           fmt::format(
               "{0}: under 12 draws per chain are too few to judge it, so do not rely on its R-hat or effective "
               "sample size; "
               "take more draws.",
               name)});
      return;
    case SeriesStatus::rare:
      out.push_back(
          {"rare",
           fmt::format("{0}: it changed only {1} {2} in all chains together, so its R-hat and effective sample size "
                       "mean little; take "
                       "many more draws.",
                       name, summary.transitions, summary.transitions == 1 ? "time" : "times")});
      return;
    case SeriesStatus::ok: break;
  }
  if (summary.r_hat > r_hat_limit) {
    out.push_back(
        {"rhat",
         fmt::format("{0}: R-hat is {1} (over {2}), so the chains do not agree yet; lengthen the warm-up and the run, "
                     "or try another "
                     "kernel.",
                     name, show_r_hat(summary.r_hat), r_hat_limit)});
  }
  const double wanted = ess_limit_per_chain * static_cast<double>(chains);
  if (summary.ess < wanted) {
    out.push_back(
        {"ess", fmt::format(
                    "{0}: the effective sample size is {1:.0f} (under {2:.0f} per chain, {3:.0f} in all), so its mean, "
                    "its error and "
                    "its R-hat are themselves uncertain; {4}.",
                    name, summary.ess, ess_limit_per_chain, wanted, more_draws(summary.ess, wanted))});
  } else if (summary.ess_tail < wanted) {
    out.push_back(
        {"ess", fmt::format(
                    "{0}: the effective sample size in the tails is {1:.0f} (under {2:.0f} per chain, {3:.0f} in all), "
                    "so its extreme "
                    "quantiles are uncertain though its mean is not; {4} if they matter.",
                    name, summary.ess_tail, ess_limit_per_chain, wanted, more_draws(summary.ess_tail, wanted))});
  }
}

/// "12 of 900 variables are", "1 of 900 variables is".
std::string share(std::size_t count, std::size_t all, const char* one, const char* many) {
  return fmt::format("{} of {} variables {}", count, all, count == 1 ? one : many);
}

void add_frozen(const VariablesSummary& variables, const VariableNames& name, std::vector<Warning>& out) {
  if (variables.frozen == 0) return;
  std::string example;
  for (const VariableRow& row : variables.worst_by_r_hat) {
    if (row.status == SeriesStatus::frozen) {
      example = fmt::format(" ({} for one)", name(row));
      break;
    }
  }
  out.push_back(
      {"stuck",
       fmt::format(
           "{}{} in every chain but not at the same value, so the chains sit in separate modes and their average means "
           "nothing; try a kernel with larger moves, tempering, or a much longer run.",
           share(variables.frozen, variables.variables, "is frozen", "are frozen"), example)});
}

void add_disagreement(const VariablesSummary& variables, const VariableNames& name, std::vector<Warning>& out) {
  if (variables.high_r_hat == 0) return;
  std::string example;
  for (const VariableRow& row : variables.worst_by_r_hat) {
    if (row.status != SeriesStatus::frozen) {
      example = fmt::format(" (worst: {} with {})", name(row), show_r_hat(row.r_hat));
      break;
    }
  }
  out.push_back(
      {"rhat",
       fmt::format(
           "{} an R-hat over {}{}, so the chains do not agree yet on their means; lengthen the warm-up and the run.",
           share(variables.high_r_hat, variables.variables, "has", "have"), r_hat_limit, example)});
}

void add_low_ess(const VariablesSummary& variables, const VariableNames& name, std::vector<Warning>& out) {
  if (variables.low_ess == 0) return;
  const double wanted = ess_limit_per_chain * static_cast<double>(variables.chains);
  std::string example;
  std::string advice = "take more draws";
  for (const VariableRow& row : variables.worst_by_ess) {
    if (row.status != SeriesStatus::frozen) {
      example = fmt::format(" (worst: {} with {:.0f})", name(row), row.ess);
      advice = more_draws(row.ess, wanted);
      break;
    }
  }
  out.push_back({"ess", fmt::format("{} an effective sample size under {:.0f} per chain, {:.0f} in all{}, so their "
                                    "means and errors are uncertain; "
                                    "{}.",
                                    share(variables.low_ess, variables.variables, "has", "have"), ess_limit_per_chain,
                                    wanted, example, advice)});
}

void add_standstill(const VariablesSummary& variables, std::vector<Warning>& out) {
  if (variables.variables > 0 && variables.constant == variables.variables) {
    out.push_back(
        {"stuck",
         "No variable changed in any chain, so the draws are one state repeated; check the acceptance rate, the "
         "temperature and the evidence."});
  }
}

}  // namespace

std::string VariableNames::operator()(const VariableRow& row) const {
  std::string name = row.variable < variables.size() ? variables[row.variable] : fmt::format("x[{}]", row.variable);
  if (row.variable < levels.size()) {
    const std::vector<std::string>& named = levels[row.variable];
    const auto level = static_cast<std::size_t>(row.level ? *row.level : 1);
    if ((row.level || named.size() == 2) && level < named.size()) return name + " = " + named[level];
  }
  if (row.level) name += fmt::format(" = {}", static_cast<int>(*row.level));
  return name;
}

std::vector<Warning> warnings(std::span<const NamedSummary> monitors, const VariablesSummary& variables,
                              std::size_t chains, const VariableNames& name) {
  std::vector<Warning> out;
  add_frozen(variables, name, out);
  for (const NamedSummary& monitor : monitors) add_monitor(monitor, chains, out);
  add_disagreement(variables, name, out);
  add_low_ess(variables, name, out);
  add_standstill(variables, out);
  if (chains == 1) {
    out.push_back({"one_chain",
                   "Only one chain was run, so R-hat compares its two halves and cannot notice a mode it never left; "
                   "run at least "
                   "four chains."});
  }
  return out;
}

}  // namespace poise
