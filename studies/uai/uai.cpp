/// Runs the chains of the UAI experiment.
#include "studies/uai/uai.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <poise/diagnose.hpp>
#include <poise/extend/base/rng.hpp>
#include <poise/extend/learning/learned_function.hpp>
#include "engines/rows.hpp"
#include "exact/junction_tree.hpp"
#include "run/start.hpp"

#include "studies/curve.hpp"

namespace poise::reproduction {

namespace {

constexpr const char* kPaperLearningOfUai = "objective=mi-bound,ridge=0,schedule=paper,optimizer=sgd,rate=0.0001";
constexpr std::uint64_t kLaterChains = 1000;  // random streams of chains that go on where another sampler ended
constexpr int kFitRounds = 6;
constexpr int kFitSteps = 1000;

std::vector<Contestant> uai_contestants(Protocol protocol) {
  const unsigned twice = protocol == Protocol::published ? 2 : 1;
  std::vector<Contestant> out = fixed_and_mixture(kPaperLearningOfUai);
  out.insert(out.end(), {{.key = "lsb2",
                          .label = "LSB 2, monotone",
                          .sampler = fmt::format("lsb2:net=monotone,init=max,{}", kPaperLearningOfUai),
                          .column = "lsb2",
                          .color = "#e69f00",
                          .steps_per_iteration = twice},
                         {.key = "lsb2-mlp",
                          .label = "LSB 2, MLP",
                          .sampler = fmt::format("lsb2:{}", kPaperLearningOfUai),
                          .color = "#e69f00",
                          .dash = "2 3",
                          .steps_per_iteration = twice}});
  if (protocol == Protocol::fair) {
    out.push_back({.key = "lsb2-entropy",
                   .label = "LSB 2, repaired",
                   .sampler = "lsb2:net=monotone,init=max,objective=entropy",
                   .color = "#e69f00",
                   .dash = "7 3"});
  }
  out.push_back({.key = "lsb", .label = "lsb", .sampler = "lsb", .color = "#d55e00"});
  out.push_back({.key = "gibbs", .label = "Gibbs", .sampler = "gibbs", .color = "#777777", .dash = "4 2"});
  return out;
}

double sum_of_levels(const Engine& engine, std::size_t chain) {
  double sum = 0.0;
  for (const Value level : levels_of(engine, chain)) sum += level;
  return sum;
}

/// P(variable at level 1) of each variable that is not observed, -1 for the others.
nlohmann::json exact_marginals(const UaiProblem& problem) {
  const JunctionTree tree(*problem.network, plan_elimination(*problem.network));
  nlohmann::json out = nlohmann::json::array();
  for (Index i = 0; i < problem.network->num_variables(); ++i) {
    out.push_back(problem.network->is_observed(i) ? -1.0 : tree.marginals().of(i)[1]);
  }
  return {{"marginals", out}, {"log_partition", tree.log_partition()}};
}

/// The monotone network on its way to max{1,t} (Figure 11).
nlohmann::json fit_to_max() {
  MonotoneFunction function(20, 20);
  nlohmann::json out;
  for (int round = 0; round <= kFitRounds; ++round) {
    const double error = fit(function, BalancingFunction::Kind::max, round == 0 ? 0 : kFitSteps);
    out["steps"].push_back(round * kFitSteps);
    out["error"].push_back(error);
    out["phi"].push_back(tabulated(BalancingFunction(function.freeze())));
  }
  return out;
}

/// How far the marginals of each chain are from the exact ones, at steps 1, 2, 5, 10, ...
class MarginalErrors {
 public:
  MarginalErrors(const Engine& engine, const std::vector<double>& exact)
      : engine_(engine), exact_(exact), counts_(engine.traits().chains), errors_(engine.traits().chains) {
    for (auto& counts : counts_) counts.assign(exact.size(), 0);
    for (std::size_t c = 0; c < counts_.size(); ++c) evals_before_.push_back(evals_of(engine, c).of_target());
    x_.resize(exact.size());
  }

  /// After step `step`, counted from 1; gives the sum of the levels.
  double look(std::size_t c, std::uint64_t step) {
    engine_.observe({c, 1}, {.levels = x_});
    double sum = 0.0;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      counts_[c][i] += x_[i];
      sum += x_[i];
    }
    if (!is_checkpoint(step)) return sum;
    double error = 0.0;
    double variables = 0.0;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      if (exact_[i] < 0.0) continue;
      error += std::abs(static_cast<double>(counts_[c][i]) / static_cast<double>(step) - exact_[i]);
      variables += 1.0;
    }
    errors_[c].push_back({static_cast<double>(evals_of(engine_, c).of_target() - evals_before_[c]), error / variables});
    return sum;
  }

  [[nodiscard]] nlohmann::json curve() const {
    nlohmann::json out;
    for (std::size_t k = 0; k < errors_[0].size(); ++k) {
      std::vector<double> evals;
      std::vector<double> errors;
      for (const auto& chain : errors_) {
        evals.push_back(chain[k].evals);
        errors.push_back(chain[k].error);
      }
      const Estimate error = estimate(errors);
      out["evals"].push_back(estimate(evals).mean);
      out["error"].push_back(error.mean);
      out["error_error"].push_back(error.error());
    }
    return out;
  }

 private:
  struct Point {
    double evals;
    double error;
  };
  /// 1, 2, 5 times powers of ten, from 10 on.
  static bool is_checkpoint(std::uint64_t step) {
    std::uint64_t power = 10;
    while (power * 10 <= step) power *= 10;
    return step == power || step == 2 * power || step == 5 * power;
  }

  const Engine& engine_;
  const std::vector<double>& exact_;
  std::vector<std::vector<std::uint64_t>> counts_;  // of level 1
  std::vector<std::vector<Point>> errors_;
  std::vector<std::uint64_t> evals_before_;
  std::vector<Value> x_;
};

/// One engine, as the list that a contestant's run takes.
std::vector<TunableEngine> only(TunableEngine made) {
  std::vector<TunableEngine> out;
  out.push_back(std::move(made));
  return out;
}

}  // namespace

UaiExperiment::UaiExperiment(const ReproduceOptions& options)
    : options_(options),
      problems_(options.data.empty() ? generate_uai_problems(options.seed) : read_uai_problems(options.data)),
      contestants_(uai_contestants(options.protocol)) {
  if (published()) {
    chains_ = 5;
    burn_in_ = 500;
  }
  if (options.effort == Effort::quick) {
    chains_ = 5;
    burn_in_ = std::min<std::uint64_t>(burn_in_, 1000);
    window_ = 4000;
    sampling_ = 5000;
  }
}

nlohmann::json UaiExperiment::data() const { return {problems_[0].fingerprint, problems_[1].fingerprint}; }

std::size_t UaiExperiment::num_parts() const { return problems_.size() * (contestants_.size() + 1) + 1; }

bool UaiExperiment::ignores_evidence(const Contestant& contestant) const {
  return published() && !parse_sampler(contestant.sampler).learns() && contestant.key != "gibbs";
}

Model UaiExperiment::model_of(const UaiProblem& problem, const Contestant& contestant) const {
  return network_model(ignores_evidence(contestant) ? problem.without_evidence : problem.network);
}

UaiExperiment::Starts UaiExperiment::first_starts(const UaiProblem& problem, const Model& model) const {
  Starts starts;
  for (std::size_t c = 0; c < chains_; ++c) {
    Rng rng = make_rng(options_.seed, Stream::experiment_start, c);
    // The published runs begin with zeros, and the evidence.
    std::vector<Value> x = published() ? std::vector<Value>(model.layout.variables, 0) : uniform_state(model, rng);
    for (Index i = 0; i < model.layout.variables; ++i) {
      if (problem.network->is_observed(i)) x[i] = static_cast<Value>(problem.network->observed[i]);
    }
    if (model.into_support) x = model.into_support(std::move(x), make_rng(options_.seed, Stream::repair, c));
    starts.push_back(std::move(x));
  }
  return starts;
}

nlohmann::json UaiExperiment::measure(const UaiProblem& problem, const Contestant& contestant,
                                      const std::vector<double>& exact, const StopFlag& stop) const {
  const auto begun = std::chrono::steady_clock::now();
  const Model model = model_of(problem, contestant);
  const Sampler sampler = parse_sampler(contestant.sampler);
  EngineOptions options;
  options.seed = options_.seed;
  options.starts = first_starts(problem, model);
  options.reference = options.starts[0];
  auto run = std::make_unique<ContestantRun>(model, contestant, only(make_engine(model, sampler, options)));
  const EngineTraits traits = run->engine().traits();
  // A step of Gibbs changes many variables, one of the others a single one.
  const bool by_sweep = traits.steps_per_sweep * 4 < traits.variables;
  const std::uint64_t stride = by_sweep ? traits.variables : 1;

  const std::uint64_t until = published() ? burn_in_ : std::min<std::uint64_t>(burn_in_, 500);
  CurveRecorder curve(run->engine(), sum_of_levels, {until / 100, until});
  run->watch([&](std::size_t c, std::uint64_t step) {
    if (step % 64 == 0) stop.check();
    if (step % contestant.steps_per_iteration == 0) curve.look(c, step / contestant.steps_per_iteration * stride);
  });
  const BalancingFunction balance = run->burn_in({burn_in_ / stride, learning_});
  const nlohmann::json burn_in_curve = by_sweep ? nlohmann::json() : curve.curve();
  if (published() && contestant.key != "gibbs") {
    // Every sampler goes on where the burn-in of sqrt ended; what is not free takes the evidence.
    const Contestant& root = contestants_[1];
    const Model root_model = model_of(problem, root);
    options.starts = first_starts(problem, root_model);
    ContestantRun other(root_model, root, only(make_engine(root_model, parse_sampler(root.sampler), options)));
    other.burn_in({burn_in_, 0});
    for (std::size_t c = 0; c < chains_; ++c) options.starts[c] = levels_of(other.engine(), c);
    options.first_chain = kLaterChains;
    TunableEngine made = make_engine(model, sampler, options);
    made.tuner->set_function(balance, sampling_ * chains_);
    for (std::size_t c = 0; c < chains_; ++c) made.tuner->reweigh(c);
    run = std::make_unique<ContestantRun>(model, contestant, only(std::move(made)));
  }

  const Engine& engine = run->engine();
  MarginalErrors errors(engine, exact);
  std::vector<std::vector<double>> sums(chains_);
  std::vector<std::vector<double>> log_probs(chains_);
  std::vector<std::uint64_t> steps(chains_, 0);
  const double accepted = total_accepted(engine);
  const double evals = evals_per_chain(engine);
  run->watch([&](std::size_t c, std::uint64_t) {
    const std::uint64_t step = ++steps[c];
    if (step % 64 == 0) stop.check();
    const double sum = errors.look(c, step);
    if (step <= window_) sums[c].push_back(sum);
    if (step % 10 == 0 && step <= window_) log_probs[c].push_back(log_prob_of(engine, c));
  });
  // A sweep of Gibbs evaluates about four times as many ratios as a step of the others.
  const std::uint64_t wanted = by_sweep ? sampling_ / 4 : sampling_;
  run->advance(wanted);

  nlohmann::json window = nlohmann::json::array();
  std::vector<double> acf(kUaiLags + 1, 0.0);
  std::vector<double> finals;
  for (std::size_t c = 0; c < chains_; ++c) {
    finals.push_back(estimate(log_probs[c]).mean);
    if (by_sweep) continue;
    window.push_back(ess_window(sums[c], kUaiLags));
    const std::vector<double> rho = autocorrelation(sums[c]);
    for (std::size_t lag = 0; lag < acf.size(); ++lag) acf[lag] += rho[lag] / static_cast<double>(chains_);
  }
  std::vector<double> trace;
  for (std::size_t k = 0; k < std::min<std::size_t>(2000, sums[0].size()); k += 5) trace.push_back(sums[0][k]);
  const auto count = static_cast<double>(wanted);
  return {{"window_ess", window},
          {"autocorrelation", acf},
          {"curve", burn_in_curve},
          {"arrival", by_sweep ? nlohmann::json() : curve.arrival(finals)},
          {"trace", trace},
          {"marginal_error", errors.curve()},
          {"phi", tabulated(balance)},
          {"acceptance_rate", (total_accepted(engine) - accepted) / (count * static_cast<double>(chains_))},
          {"evals_per_step", (evals_per_chain(engine) - evals) / count},
          {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count()}};
}

Results UaiExperiment::compute(PartRunner& runner) const {
  std::vector<Part> first = {{"fit-to-max", [](const StopFlag&) { return fit_to_max(); }}};
  for (std::size_t n = 0; n < problems_.size(); ++n) {
    first.push_back(
        {fmt::format("network{}-exact", n + 1), [this, n](const StopFlag&) { return exact_marginals(problems_[n]); }});
  }
  Results results = runner.run(first);
  std::vector<Part> parts;
  for (std::size_t n = 0; n < problems_.size(); ++n) {
    const std::vector<double> exact = numbers(results[fmt::format("network{}-exact", n + 1)]["marginals"]);
    for (const Contestant& contestant : contestants_) {
      parts.push_back(
          {fmt::format("network{}-{}", n + 1, contestant.key), [this, n, &contestant, exact](const StopFlag& stop) {
             return measure(problems_[n], contestant, exact, stop);
           }});
    }
  }
  results.merge(runner.run(parts));
  return results;
}

const nlohmann::json& UaiExperiment::result(const Results& results, std::size_t network, const std::string& key) const {
  return results.at(fmt::format("network{}-{}", network + 1, key));
}

double UaiExperiment::common_evals(const Results& results, std::size_t network) const {
  double least = std::numeric_limits<double>::infinity();
  for (const Contestant& contestant : contestants_) {
    least = std::min(least, number(result(results, network, contestant.key)["marginal_error"]["evals"].back()));
  }
  return least;
}

Estimate UaiExperiment::marginal_error(const Results& results, std::size_t network, const std::string& key) const {
  const nlohmann::json& found = result(results, network, key)["marginal_error"];
  const std::vector<double> evals = numbers(found["evals"]);
  const std::vector<double> mean = numbers(found["error"]);
  const std::vector<double> error = numbers(found["error_error"]);
  const double place = common_evals(results, network);
  std::size_t k = 1;
  while (k + 1 < evals.size() && evals[k] < place) ++k;
  const double part = (std::log(place) - std::log(evals[k - 1])) / (std::log(evals[k]) - std::log(evals[k - 1]));
  const auto between = [&](const std::vector<double>& values) {
    return std::exp(std::log(values[k - 1]) + part * (std::log(values[k]) - std::log(values[k - 1])));
  };
  return {between(mean), between(error) * std::sqrt(static_cast<double>(chains_)), chains_};
}

std::string UaiExperiment::name_of(std::size_t network) const {
  return options_.data.empty() ? fmt::format("Network {} (generated)", network + 1)
                               : fmt::format("MN {} ({})", network + 1, problems_[network].name);
}

std::vector<Contestant> UaiExperiment::in_tables() const {
  std::vector<Contestant> out = contestants_;
  std::erase_if(out, [](const Contestant& contestant) { return contestant.key == "gibbs"; });
  return out;
}

std::unique_ptr<ExperimentRun> make_uai_experiment(const ReproduceOptions& options) {
  return std::make_unique<UaiExperiment>(options);
}

}  // namespace poise::reproduction
