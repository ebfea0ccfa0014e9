/// What the paper says of its Ising experiment, held against the numbers.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/text.hpp"

#include "studies/estimate.hpp"
#include "studies/ising/ising.hpp"
#include "studies/published.hpp"

namespace poise::reproduction {

namespace {

using Holds = Verdict::Holds;

std::string name_of(const IsingCase& which) { return fmt::format("case {}", which.number); }

/// Geometric mean of the effective sizes of the sum and of log p per step, chain by chain.
Estimate combined(const nlohmann::json& result) {
  const std::vector<double> sum = numbers(result["ess_sum_per_step"]);
  const std::vector<double> log_prob = numbers(result["ess_log_prob_per_step"]);
  std::vector<double> both(sum.size());
  for (std::size_t c = 0; c < both.size(); ++c) both[c] = std::sqrt(sum[c] * log_prob[c]);
  return estimate(both);
}

}  // namespace

std::vector<Verdict> IsingExperiment::judge(const Results& results) const {
  std::vector<Verdict> verdicts;
  const auto ess = [&](const IsingCase& which, const std::string& key) {
    return estimate_of(result(results, which, key)["window_ess"]);
  };
  const auto arrival = [&](const IsingCase& which, const std::string& key, const char* unit) {
    return estimate_of(result(results, which, key)["arrival"][unit]);
  };
  const auto label = [&](const std::string& key) {
    return std::find_if(contestants_.begin(), contestants_.end(), [&](const Contestant& c) { return c.key == key; })
        ->label;
  };
  const std::vector<std::string> fixed = {"barker", "sqrt", "min", "max"};

  std::size_t same = 0;
  std::size_t compared = 0;
  for (const IsingCase& which : kIsingCases) {
    for (const std::string& key : fixed) {
      ++compared;
      same += differ(ess(which, key), *published_ising(which.number, key)) ? 0 : 1;
    }
  }
  verdicts.push_back(
      {published() ? "The published settings give the published numbers for the fixed functions (Table 2)."
                   : "The published effective sample sizes of the fixed functions are those of the stationary chain.",
       same == compared      ? Holds::yes
       : 2 * same < compared ? Holds::no
                             : Holds::open,
       fmt::format("{} of {} numbers do not differ by more than chance.", same, compared)});

  Tally worst;
  for (const IsingCase& which : kIsingCases) {
    const bool all = std::all_of(contestants_.begin(), contestants_.end(), [&](const Contestant& other) {
      return other.key == "max" || exceeds(ess(which, other.key), ess(which, "max"));
    });
    worst.add(name_of(which), all, !all);
  }
  verdicts.push_back({"max{1,t} mixes worse than every other function (Table 2).", worst.holds(),
                      fmt::format("Beyond chance so in: {}.", worst.text())});

  Tally faster;
  std::string by_steps;
  std::string by_evals;
  for (const IsingCase& which : kIsingCases) {
    const Estimate learned = arrival(which, "lsb2", "steps");
    const Estimate root = arrival(which, "sqrt", "steps");
    faster.add(name_of(which), exceeds(root, learned), exceeds(learned, root));
    by_steps += fmt::format("{}case {}: {} against {}", by_steps.empty() ? "" : "; ", which.number, text_of(learned),
                            text_of(root));
    by_evals += fmt::format("{}{:.0f}", by_evals.empty() ? "" : ", ",
                            arrival(which, "lsb2", "evals").mean / arrival(which, "sqrt", "evals").mean);
  }
  verdicts.push_back(
      {"LSB 2 converges in fewer iterations than the best fixed function, \u221at (Figure 2).", faster.holds(),
       fmt::format("Beyond chance so in: {}. Iterations until 95 % of the way in log p, LSB 2 against \u221at: {}. "
                   "Counted in ratios of the target that were evaluated, it takes {} times as many, for learning at "
                   "every step looks at all of them.",
                   faster.text(), by_steps, by_evals)});

  const Estimate two = arrival(kIsingCases[2], "lsb2", "steps");
  const Estimate one = arrival(kIsingCases[2], "sqrt", "steps");
  const double speed = one.mean / two.mean;
  verdicts.push_back(
      {"In case 3 LSB 2 converges twice as fast as \u221at, counted in iterations.",
       speed > 1.7   ? Holds::yes
       : speed < 1.3 ? Holds::no
                     : Holds::open,
       fmt::format("{} iterations against {}: {:.2f} times as fast{}.", text_of(two), text_of(one), speed,
                   published() ? ", with two steps in each of its iterations" : ", with one step in an iteration")});

  const Estimate case4 = ess(kIsingCases[3], "lsb2");
  std::string best = "lsb2";
  for (const Contestant& contestant : contestants_) {
    if (!contestant.column.empty() && ess(kIsingCases[3], contestant.key).mean > ess(kIsingCases[3], best).mean) {
      best = contestant.key;
    }
  }
  const Estimate best_ess = ess(kIsingCases[3], best);
  verdicts.push_back({"In case 4 LSB 2 mixes best of the paper's six (Table 2).",
                      best == "lsb2"            ? Holds::yes
                      : differ(best_ess, case4) ? Holds::no
                                                : Holds::open,
                      best == "lsb2" ? fmt::format("Its effective sample size is {}, the largest.", text_of(case4))
                                     : fmt::format("Its effective sample size is {}; that of {} is {}.", text_of(case4),
                                                   label(best), text_of(best_ess))});

  Tally good;
  std::string details;
  for (const IsingCase& which : kIsingCases) {
    const Estimate ours = combined(result(results, which, "lsb"));
    Estimate top;
    std::string name;
    for (const std::string& key : fixed) {
      const Estimate other = combined(result(results, which, key));
      if (!name.empty() && !(other.mean > top.mean)) continue;
      top = other;
      name = key;
    }
    good.add(name_of(which), !exceeds(top, ours), exceeds(top, ours));
    details += fmt::format("{}case {}: {:.0f} % of {}", details.empty() ? "" : "; ", which.number,
                           100.0 * ours.mean / top.mean, label(name));
  }
  verdicts.push_back(
      {"Ours: lsb mixes at least as well as the best fixed function, whichever that is.", good.holds(),
       fmt::format("Not worse beyond chance in: {}. Effective samples of \u03a3 x and log p per step (geometric mean) "
                   "against the best fixed function: {}.",
                   good.text(), details)});
  return verdicts;
}

}  // namespace poise::reproduction
