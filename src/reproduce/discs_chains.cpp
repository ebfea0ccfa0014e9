/// Chains that begin near equilibrium, and the effective sample size of log p that they reach.
#include "discs_chains.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <variant>
#include <vector>

#include <poise/diagnose/diagnose.hpp>
#include <poise/run/run.hpp>
#include <poise/run/sampler.hpp>

#include "cpu_clock.hpp"

namespace poise::reproduction {

namespace {

/// Chains of these numbers have random numbers of their own, so that starting states are no part of what follows.
constexpr std::uint64_t kStartingChains = std::uint64_t{1} << 21;
/// Part of the run that is timed once more, without the bookkeeping.
constexpr std::uint64_t kTimedPart = 10;

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

/// One number per chain; a chain whose log p never changes has none of them.
std::vector<double> effective_sizes(const Trace& trace) {
  std::vector<double> out;
  for (std::size_t c = 0; c < trace.chains; ++c) {
    const double size = ess_mean({trace.monitors[0].data() + c * trace.draws, 1, trace.draws});
    out.push_back(std::isfinite(size) ? size : 0.0);
  }
  return out;
}

double moves_of(const Model& model) {
  double moves = 0.0;
  for (Index i = 0; i < model.layout.variables; ++i) moves += model.layout.levels(i) - 1.0;
  return moves;
}

}  // namespace

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
  std::vector<double> per_step = effective_sizes(result.trace);
  for (double& size : per_step) size /= static_cast<double>(steps);
  const auto all_steps = static_cast<double>(result.steps);
  const double looks = static_cast<double>(result.evals.ratio) / moves_of(model) +
                       static_cast<double>(std::max(result.evals.gradient, result.evals.target));

  const std::uint64_t timed = std::max<std::uint64_t>(1, steps / kTimedPart);
  const double clock = cpu_seconds();
  run.advance(timed);
  stop.check();
  const double seconds = (cpu_seconds() - clock) / static_cast<double>(timed);
  nlohmann::json out = {{"model", model.name},
                        {"sampler", sampler},
                        {"chosen", result.choice ? result.choice->sampler : sampler},
                        {"ess_per_step", per_step},
                        {"evaluations_per_step", looks / all_steps},
                        {"acceptance_rate", result.acceptance_rate},
                        {"r_hat", r_hat({result.trace.monitors[0].data(), result.trace.chains, result.trace.draws})},
                        {"steps", steps},
                        {"warmup_steps", result.warmup_steps},
                        {"seconds",
                         {{"total", std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count()},
                          {"per_step_of_all_chains", seconds}}}};
  if (result.choice) {
    double work = 0.0;
    for (const CandidateScore& one : result.choice->candidates) {
      if (one.sampler == result.choice->sampler) work = one.run_work;
    }
    out["pilot"] = work > 0.0 ? result.choice->pilot_work / work : 0.0;
  }
  return out;
}

}  // namespace poise::reproduction
