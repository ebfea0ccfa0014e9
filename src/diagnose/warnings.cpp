/// Warnings: diagnostics as sentences that name what to do next, one for each cause.
#include <cmath>

#include <fmt/format.h>

#include <poise/diagnose.hpp>
#include "diagnose/effective_size.hpp"

namespace poise {
namespace {

/// Four decimals near 1, for 1.0104 is not 1.01.
std::string show_r_hat(double r_hat) {
  if (std::isinf(r_hat)) return "infinity";
  return r_hat < 1.1 ? fmt::format("{:.4f}", r_hat) : fmt::format("{:.3g}", r_hat);
}

/// 1 or 2 significant digits, rounded up: 1200, 6000, 20000.
double round_up(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - (value < 100 ? 0 : 1));
  return std::ceil(value / unit - 1e-9) * unit;
}

/// How many times longer chains that mix must run for R-hat to fall under its limit: R-hat^2 - 1 goes as 1/n.
double to_limit(double r_hat) { return (r_hat * r_hat - 1) / (r_hat_limit * r_hat_limit - 1); }

/// A series, be it a monitor or that of a variable.
struct Series {
  double r_hat;
  double ess;
  double chance;
  SeriesStatus status;
  double mcse;  // infinite for a monitor, whose scale says nothing
};

/// Series with the same trouble: how many there are, and the worst.
class Group {
 public:
  void add_monitor(const NamedSummary& monitor, bool worst) {
    add(monitors_, worst, [&] { return monitor.name; });
  }
  /// Rows come by variable, which counts once.
  void add_row(const VariableRow& row, const VariableNames& name, bool worst) {
    if (variables_ > 0 && last_ == row.variable) --variables_;
    last_ = row.variable;
    add(variables_, worst, [&] { return name(row); });
  }

  [[nodiscard]] bool empty() const { return monitors_ + variables_ == 0; }
  [[nodiscard]] const std::string& example() const { return example_; }
  /// "12 of 900 variables and log_prob", "2 monitors"; `all` of the variables.
  [[nodiscard]] std::string count(std::size_t all) const {
    std::string out;
    if (variables_ > 0) out = fmt::format("{} of {} variables", variables_, all);
    if (monitors_ > 0)
      out += fmt::format("{}{} monitor{}", out.empty() ? "" : " and ", monitors_, monitors_ == 1 ? "" : "s");
    return out;
  }

 private:
  template <class Name>
  void add(std::size_t& count, bool worst, Name&& name) {
    ++count;
    if (worst || example_.empty()) example_ = name();
  }

  std::size_t monitors_ = 0;
  std::size_t variables_ = 0;
  Index last_ = 0;
  std::string example_;
};

/// All series of a run by what is wrong with them: each is in one group at most.
struct Groups {
  Group stuck;
  Group disagreeing;
  Group few;
  Group non_finite;
  double largest_r_hat = 0.0;
  double smallest_ess = std::numeric_limits<double>::infinity();        // of those with few effective draws
  double ess_of_disagreeing = std::numeric_limits<double>::infinity();  // the smallest
  bool moves = false;                                                   // any series

  template <class Add>
  void sort(const Series& series, std::size_t tests, Add&& add) {
    moves = moves || series.status != SeriesStatus::constant;
    if (series.status == SeriesStatus::frozen) {
      add(stuck, false);
    } else if (series.status == SeriesStatus::non_finite) {
      add(non_finite, false);
    } else if (diagnose_detail::is_high(series.chance, tests)) {
      add(disagreeing, series.r_hat > largest_r_hat);
      largest_r_hat = std::max(largest_r_hat, series.r_hat);
      ess_of_disagreeing = std::min(ess_of_disagreeing, series.ess);
    } else if (series.ess < ess_alarm && series.mcse > diagnose_detail::worth_a_warning) {
      add(few, series.ess < smallest_ess);
      smallest_ess = std::min(smallest_ess, series.ess);
    }
  }
};

Groups sort_series(std::span<const NamedSummary> monitors, const VariablesSummary& variables,
                   const VariableNames& name) {
  Groups groups;
  const std::size_t tests = monitors.size() + variables.rows.size();
  for (const NamedSummary& one : monitors) {
    const SeriesSummary& it = one.summary;
    groups.sort({it.r_hat, it.ess, it.chance, it.status, INFINITY}, tests,
                [&](Group& group, bool worst) { group.add_monitor(one, worst); });
  }
  for (const VariableRow& row : variables.rows) {
    groups.sort({row.r_hat, row.ess, row.chance, row.status, row.mcse}, tests,
                [&](Group& group, bool worst) { group.add_row(row, name, worst); });
  }
  return groups;
}

void add_mixing(const Groups& groups, std::size_t variables, const RunFacts& facts, std::vector<Warning>& out) {
  if (!groups.moves) {
    out.push_back({"stuck", "Nothing changed in any chain: the draws are one state repeated", facts.better(INFINITY)});
  }
  if (!groups.stuck.empty()) {
    out.push_back({"stuck",
                   fmt::format("{} never changed in any chain, but chains differ ({} for one): they sit in separate "
                               "modes, and their average means nothing",
                               groups.stuck.count(variables), groups.stuck.example()),
                   facts.better(INFINITY)});
  }
  // Chains that are stuck disagree for that reason.
  if (!groups.disagreeing.empty() && groups.stuck.empty()) {
    out.push_back({"rhat",
                   fmt::format("Chains disagree: R-hat is over {} by more than chance for {} (worst: {} with {})",
                               r_hat_limit, groups.disagreeing.count(variables), groups.disagreeing.example(),
                               show_r_hat(groups.largest_r_hat)),
                   facts.better(std::max(ess_limit / groups.ess_of_disagreeing, to_limit(groups.largest_r_hat)))});
  }
  // Chains that disagree have few effective draws for that reason.
  if (!groups.few.empty() && groups.stuck.empty() && groups.disagreeing.empty()) {
    out.push_back({"ess",
                   fmt::format("Few effective draws: under {:.0f} for {} (worst: {} with {:.0f}), so errors are rough",
                               ess_alarm, groups.few.count(variables), groups.few.example(), groups.smallest_ess),
                   facts.better(ess_limit / groups.smallest_ess)});
  }
  if (facts.chains == 1) {
    out.push_back({"one_chain", "One chain cannot show a mode that it never left", "--chains 4"});
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

std::string RunFacts::longer(double factor) const {
  if (seconds > 0.0) return fmt::format("--seconds {:.0f}", round_up(std::max(1.0, factor * seconds)));
  return fmt::format("--draws {:.0f}", round_up(factor * static_cast<double>(draws)));
}

std::string RunFacts::better(double factor) const {
  // A ladder has ten to twenty rungs for the models that need one, so it costs as much as a run that many times longer.
  constexpr double kPriceOfLadder = 20.0;
  if (factor > kPriceOfLadder && !sampler.starts_with(crossing)) return "--sampler " + crossing;
  return longer(std::clamp(factor, 2.0, kPriceOfLadder));
}

std::vector<Warning> warnings(std::span<const NamedSummary> monitors, const VariablesSummary& variables,
                              const RunFacts& facts) {
  std::vector<Warning> out;
  const Groups groups = sort_series(monitors, variables, facts.names);
  if (!groups.non_finite.empty()) {
    out.push_back({"non_finite",
                   fmt::format("Some draws of {} are infinite or not a number, so it has no mean or error",
                               groups.non_finite.example()),
                   "--init dispersed"});
  }
  if (facts.independent) return out;
  if (facts.draws < diagnose_detail::fewest_draws) {
    out.push_back({"short", fmt::format("{} draws a chain are too few to judge them", facts.draws),
                   facts.seconds > 0.0 ? facts.longer(100) : "--draws 1000"});
  } else if (!monitors.empty() || !variables.rows.empty()) {
    add_mixing(groups, variables.variables, facts, out);
  }
  return out;
}

}  // namespace poise
