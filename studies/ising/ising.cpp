/// Runs the chains of the Ising experiment.
#include "studies/ising/ising.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include <poise/diagnose.hpp>
#include "engines/rows.hpp"
#include "run/start.hpp"

#include "studies/curve.hpp"
#include "studies/estimate.hpp"

namespace poise::reproduction {

namespace {

constexpr std::uint64_t kRealisation = 300;  // burn-in steps before the pictures of Figure 3
constexpr std::size_t kTraceSteps = 2000;    // of Figure 6
constexpr std::size_t kTraceStride = 5;
constexpr const char* kPaperLearningOfIsing = "objective=mi-bound,ridge=0,schedule=paper";

std::vector<Contestant> ising_contestants(Protocol protocol) {
  std::vector<Contestant> out = fixed_and_mixture(kPaperLearningOfIsing);
  out.push_back({.key = "lsb2",
                 .label = "LSB 2",
                 .sampler = fmt::format("lsb2:{}", kPaperLearningOfIsing),
                 .column = "lsb2",
                 .color = "#e69f00",
                 .steps_per_iteration = protocol == Protocol::published ? 2U : 1U});
  if (protocol == Protocol::fair) {
    out.push_back({.key = "lsb1-entropy",
                   .label = "LSB 1, repaired",
                   .sampler = "lsb1:objective=entropy",
                   .color = "#56b4e9",
                   .dash = "7 3"});
    out.push_back({.key = "lsb2-entropy",
                   .label = "LSB 2, repaired",
                   .sampler = "lsb2:objective=entropy",
                   .color = "#e69f00",
                   .dash = "7 3"});
  }
  out.push_back({.key = "lsb", .label = "lsb", .sampler = "lsb", .color = "#d55e00"});
  return out;
}

double magnetization(const Engine& engine, std::size_t chain) {
  double sum = 0.0;
  engine.observe({chain, 1}, {.statistics = {&sum, 1}});
  return sum;
}

std::string picture_of(const Engine& engine) {
  std::string out;
  for (const Value level : levels_of(engine, 0)) out += static_cast<char>('0' + level);
  return out;
}

}  // namespace

std::string ising_spec(const IsingCase& which, std::uint64_t seed) {
  return fmt::format("ising:case={},seed={}", which.number, seed);
}

IsingExperiment::IsingExperiment(const ReproduceOptions& options)
    : options_(options), contestants_(ising_contestants(options.protocol)) {
  if (options.effort == Effort::quick) {
    chains_ = 8;
    sampling_ = 3000;
    fair_burn_in_ = 4000;
  }
}

std::uint64_t IsingExperiment::field_seed(std::size_t chain) const {
  // Chains with the same alpha share it in every sampler; published runs have one alpha per chain.
  return options_.seed + (published() ? chain * 7919 : 0);
}

ContestantRun IsingExperiment::make_chains(const IsingCase& which, const Contestant& contestant) const {
  const Sampler sampler = parse_sampler(contestant.sampler);
  RunOptions options;
  options.seed = options_.seed;
  options.chains = published() ? 1 : chains_;
  std::vector<TunableEngine> members;
  Model model;
  for (std::size_t c = 0; c < chains_; c += options.chains) {
    model = make_model(ising_spec(which, field_seed(c)));
    options.first_chain = c;
    members.push_back(make_engine(model, sampler, engine_options(model, options)));
  }
  return {model, contestant, std::move(members)};
}

nlohmann::json IsingExperiment::measure(const IsingCase& which, const Contestant& contestant,
                                        const StopFlag& stop) const {
  const auto begun = std::chrono::steady_clock::now();
  ContestantRun run = make_chains(which, contestant);
  const Engine& engine = run.engine();
  const std::uint64_t until = published() ? which.burn_in : 2 * which.burn_in;
  CurveRecorder curve(engine, magnetization, {std::max<std::uint64_t>(1, until / 200), until});
  std::vector<std::vector<double>> sums(chains_);  // the series that effective sample sizes are made from
  std::string picture;
  run.watch([&](std::size_t c, std::uint64_t step) {
    if (step % 64 == 0) stop.check();
    if (step % contestant.steps_per_iteration != 0) return;
    const std::uint64_t iteration = step / contestant.steps_per_iteration;
    curve.look(c, iteration);
    if (c == 0 && iteration == kRealisation) picture = picture_of(engine);
    if (published() && iteration > which.window_start) sums[c].push_back(magnetization(engine, c));
  });
  const BalancingFunction balance = run.burn_in({published() ? which.burn_in : fair_burn_in_, which.burn_in});
  const double burn_in_evals = evals_per_chain(engine);
  const double accepted = total_accepted(engine);
  const std::size_t transient = sums[0].size();
  std::vector<std::vector<double>> log_probs(chains_);
  run.watch([&](std::size_t c, std::uint64_t step) {
    if (step % 64 == 0) stop.check();
    sums[c].push_back(magnetization(engine, c));
    log_probs[c].push_back(log_prob_of(engine, c));
  });
  run.advance(sampling_);
  const auto steps = static_cast<double>(sampling_);

  nlohmann::json window = nlohmann::json::array();
  nlohmann::json ess_sum = nlohmann::json::array();
  nlohmann::json ess_log_prob = nlohmann::json::array();
  std::vector<double> acf(which.lags + 1, 0.0);
  std::vector<double> finals;
  for (std::size_t c = 0; c < chains_; ++c) {
    window.push_back(ess_window(sums[c], which.lags));
    const std::vector<double> rho = autocorrelation(sums[c]);
    for (std::size_t lag = 0; lag < acf.size(); ++lag) acf[lag] += rho[lag] / static_cast<double>(chains_);
    ess_sum.push_back(ess_mean({sums[c].data() + transient, 1, sampling_}) / steps);
    ess_log_prob.push_back(ess_mean({log_probs[c].data(), 1, sampling_}) / steps);
    finals.push_back(estimate(log_probs[c]).mean);
  }
  std::vector<double> trace;
  for (std::size_t k = 0; k < std::min<std::size_t>(kTraceSteps, sampling_); k += kTraceStride) {
    trace.push_back(sums[0][transient + k]);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return {{"window_ess", window},
          {"ess_sum_per_step", ess_sum},
          {"ess_log_prob_per_step", ess_log_prob},
          {"autocorrelation", acf},
          {"curve", curve.curve()},
          {"arrival", curve.arrival(finals)},
          {"trace", trace},
          {"trace_stride", kTraceStride},
          {"picture", picture},
          {"phi", tabulated(balance)},
          {"log_prob", estimate(finals).mean},
          {"acceptance_rate", (total_accepted(engine) - accepted) / (steps * static_cast<double>(chains_))},
          {"evals_burn_in", burn_in_evals},
          {"evals_per_step", (evals_per_chain(engine) - burn_in_evals) / steps},
          {"seconds", seconds}};
}

Results IsingExperiment::compute(PartRunner& runner) const {
  std::vector<Part> parts;
  for (const IsingCase& which : kIsingCases) {
    for (const Contestant& contestant : contestants_) {
      parts.push_back({fmt::format("case{}-{}", which.number, contestant.key),
                       [this, &which, &contestant](const StopFlag& stop) { return measure(which, contestant, stop); }});
    }
  }
  return runner.run(parts);
}

const nlohmann::json& IsingExperiment::result(const Results& results, const IsingCase& which,
                                              const std::string& key) const {
  return results.at(fmt::format("case{}-{}", which.number, key));
}

std::unique_ptr<ExperimentRun> make_ising_experiment(const ReproduceOptions& options) {
  if (!options.data.empty()) throw InputError("--data: the Ising experiment makes its own data, expected no directory");
  return std::make_unique<IsingExperiment>(options);
}

}  // namespace poise::reproduction
