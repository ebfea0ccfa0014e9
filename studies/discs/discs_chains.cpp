/// Chains that begin near equilibrium, and the effective sample size of log p that they reach.
#include "studies/discs/discs.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <variant>
#include <vector>

#include <poise/diagnose.hpp>
#include <poise/run.hpp>
#include <poise/sampler.hpp>

#include "studies/contestant.hpp"
#include "studies/estimate.hpp"

namespace poise::reproduction {

namespace {

/// Chains of these numbers have random numbers of their own, so that starting states are no part of what follows.
constexpr std::uint64_t kStartingChains = std::uint64_t{1} << 21;
/// Part of the run that is timed once more, without the bookkeeping, and the windows that it is cut into.
constexpr std::uint64_t kTimedPart = 10;
constexpr std::uint64_t kWindows = 5;

RunOptions options_of(const DiscsPlan& plan) {
  RunOptions options;
  options.chains = plan.chains;
  options.seed = plan.seed;
  options.first_chain = plan.first_chain;
  options.threads = 1;  // the parts of an experiment have threads of their own
  options.keep = Keep::monitors;
  return options;
}

std::vector<Value> starting_states(const Model& model, const DiscsPlan& plan, const StopFlag& stop) {
  const bool rbm = std::holds_alternative<std::shared_ptr<const Rbm>>(model.description);
  RunOptions options = options_of(plan);
  options.first_chain = kStartingChains + plan.first_chain;
  options.warmup = 0;
  options.start = plan.ordered ? Start::zeros : Start::uniform;
  Run run(model, parse_sampler(rbm ? "rbm-gibbs" : "gibbs"), options, {.stop = stop.get()});
  run.advance(plan.start_sweeps);
  stop.check();
  return run.states();
}

/// Effective sample size of log p per chain: that of all chains together, over their number, so that chains that
/// disagree count for little. (A chain by itself does not know how far it has to go, and looks the better the shorter
/// it is.) The error is that of the jackknife over chains. Chains whose log p never changes have no effective samples.
Estimate effective_size(const Trace& trace) {
  const std::vector<double>& log_prob = trace.monitors[0];
  const auto per_chain = [&](const std::vector<double>& values) {
    const std::size_t chains = values.size() / trace.draws;
    const double size = ess_mean({values.data(), chains, trace.draws});
    return std::isfinite(size) ? size / static_cast<double>(chains) : 0.0;
  };
  std::vector<double> without;
  for (std::size_t c = 0; c < trace.chains; ++c) {
    std::vector<double> rest = log_prob;
    const auto first = rest.begin() + static_cast<std::ptrdiff_t>(c * trace.draws);
    rest.erase(first, first + static_cast<std::ptrdiff_t>(trace.draws));
    without.push_back(per_chain(rest));
  }
  // Leaving one out moves the estimate by 1/(n-1) of what it does to the mean of n.
  const double spread = estimate(without).sd * static_cast<double>(trace.chains - 1);
  return {per_chain(log_prob), spread, trace.chains};
}

double moves_of(const Model& model) {
  double moves = 0.0;
  for (Index i = 0; i < model.layout.variables; ++i) moves += model.layout.levels(i) - 1.0;
  return moves;
}

/// Seconds of a step of all chains: the median of several windows, for one of a few milliseconds may meet anything.
double seconds_per_step(Run& run, std::uint64_t steps, double at_least, const StopFlag& stop) {
  const std::uint64_t window = std::max<std::uint64_t>(1, steps / kTimedPart / kWindows);
  std::vector<double> found;
  double total = 0.0;
  while (found.size() < kWindows || total < at_least) {
    const double clock = cpu_seconds();
    run.advance(window);
    const double seconds = cpu_seconds() - clock;
    stop.check();
    total += seconds;
    found.push_back(seconds / static_cast<double>(window));
  }
  std::sort(found.begin(), found.end());
  return found[found.size() / 2];
}

}  // namespace

Estimate ess_per_step(const nlohmann::json& result) {
  const nlohmann::json& found = result["ess_per_step"];
  return {number(found["mean"]), number(found["sd"]), found["chains"].get<std::size_t>()};
}

nlohmann::json sample_discs(const Model& model, const std::string& sampler, const DiscsPlan& plan,
                            const StopFlag& stop) {
  const auto begun = std::chrono::steady_clock::now();
  RunOptions options = options_of(plan);
  options.start = Start::given;
  options.given = starting_states(model, plan, stop);
  options.thin = plan.thin;
  options.draws = plan.draws;
  options.warmup = plan.warmup;
  Run run(model, parse_sampler(sampler), options, {.stop = stop.get()});
  run.warm_up();
  run.sample(plan.draws);
  stop.check();
  const RunResult result = run.finish();

  const std::uint64_t steps = result.steps / plan.chains;
  const Estimate ess = effective_size(result.trace);
  const auto all_steps = static_cast<double>(result.steps);
  const double looks = static_cast<double>(result.evals.ratio) / moves_of(model) +
                       static_cast<double>(std::max(result.evals.gradient, result.evals.target));

  const double seconds = seconds_per_step(run, steps, plan.timing, stop);
  return {{"model", model.name},
          {"sampler", sampler},
          {"chosen", result.choice ? result.choice->sampler : sampler},
          {"ess_per_step",
           {{"mean", ess.mean / static_cast<double>(steps)},
            {"sd", ess.sd / static_cast<double>(steps)},
            {"chains", ess.count}}},
          {"evaluations_per_step", looks / all_steps},
          {"acceptance_rate", result.acceptance_rate},
          {"r_hat", r_hat({result.trace.monitors[0].data(), result.trace.chains, result.trace.draws})},
          {"steps", steps},
          {"warmup_steps", result.warmup_steps},
          {"seconds",
           {{"total", std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count()},
            {"per_step_of_all_chains", seconds}}}};
}

}  // namespace poise::reproduction
