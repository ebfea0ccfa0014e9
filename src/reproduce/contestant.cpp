/// Burn-in: plain, in two phases, or learning from the first step on.
#include "contestant.hpp"

#include <limits>

#include <poise/run/warmup.hpp>

namespace poise::reproduction {

namespace {

constexpr std::uint64_t kForGood = std::numeric_limits<std::uint64_t>::max();
/// Starting states have streams of their own, far from those of chains and of learning.
constexpr std::uint64_t kStartStreams = std::uint64_t{3} << 60;

/// One update of the function from the present states of all chains.
class PaperLearning {
 public:
  PaperLearning(Ensemble& ensemble, const Sampler& sampler)
      : ensemble_(ensemble),
        learner_(sampler.make_function(), sampler.learn),
        states_(ensemble.num_chains()),
        gradients_(ensemble.num_chains()) {}

  void round() {
    const std::size_t chains = ensemble_.num_chains();
    ensemble_.set_function(learner_.balance(), chains);
    for (std::size_t c = 0; c < chains; ++c) {
      ensemble_.prepare(c);
      ensemble_.transition_gradient(c, learner_.objective().needs(), states_[c]);
    }
    learner_.observe(states_);
    for (std::size_t c = 0; c < chains; ++c) {
      learner_.objective().coefficients(states_[c], coefficients_);
      gradients_[c].assign(BalanceTable::kPoints, 0.0);
      ensemble_.add_gradient(c, states_[c], coefficients_, gradients_[c]);
    }
    learner_.update(states_, gradients_, 0.0);  // always as at the beginning: full rate, no averaging
  }

  BalancingFunction freeze() {
    BalancingFunction balance = learner_.freeze();
    ensemble_.set_function(balance, kForGood);
    for (std::size_t c = 0; c < ensemble_.num_chains(); ++c) ensemble_.prepare(c);
    return balance;
  }

 private:
  Ensemble& ensemble_;
  Learner learner_;
  std::vector<TransitionGradient> states_;
  std::vector<std::vector<double>> gradients_;
  std::vector<double> coefficients_;
};

}  // namespace

std::vector<Contestant> fixed_and_mixture(const std::string& learning) {
  return {
      {.key = "barker", .label = "t/(1+t)", .sampler = "lb:g=barker", .column = "barker", .color = "#0072b2"},
      {.key = "sqrt", .label = "\u221at", .sampler = "lb:g=sqrt", .column = "sqrt", .color = "#000000"},
      {.key = "min", .label = "min{1,t}", .sampler = "lb:g=min", .column = "min", .color = "#009e73", .dash = "2 3"},
      {.key = "max",
       .label = "max{1,t}",
       .sampler = "lb:g=max",
       .column = "max",
       .color = "#cc79a7",
       .dash = "8 3 2 3"},
      {.key = "lsb1", .label = "LSB 1", .sampler = "lsb1:" + learning, .column = "lsb1", .color = "#56b4e9"}};
}

BalancingFunction burn_in(Ensemble& ensemble, const Contestant& contestant, const BurnInPlan& plan) {
  const Sampler sampler = parse_sampler(contestant.sampler);
  if (sampler.learns() && sampler.schedule == Sampler::Schedule::two_phase) {
    ThreadPool alone(1);
    return warm_up(ensemble, sampler, plan.iterations, alone, [](Phase, std::uint64_t) { return true; }).balance;
  }
  BalancingFunction balance(sampler.function);
  const std::uint64_t learning = sampler.learns() ? std::min(plan.learning, plan.iterations) : 0;
  if (learning > 0) {
    PaperLearning learner(ensemble, sampler);
    for (std::uint64_t step = 0; step < learning * contestant.steps_per_iteration; ++step) {
      learner.round();
      ensemble.advance(0, ensemble.num_chains(), 1);
    }
    balance = learner.freeze();
  }
  ensemble.advance(0, ensemble.num_chains(), (plan.iterations - learning) * contestant.steps_per_iteration);
  return balance;
}

std::vector<Value> uniform_start(const Model& model, std::uint64_t seed, std::uint64_t chain) {
  Rng rng(seed, kStartStreams + chain);
  std::vector<Value> x(model.layout.variables);
  for (Index i = 0; i < model.layout.variables; ++i) {
    const auto level = static_cast<Value>(rng.uniform() * model.layout.levels(i));
    x[i] = model.layout.is_observed(i) ? static_cast<Value>(model.layout.observed[i]) : level;
  }
  return x;
}

std::vector<double> tabulated(const BalancingFunction& balance) {
  std::vector<double> phi;
  for (int k = 0; k <= 128; ++k) {
    const double u = BalanceTable::grid(k);
    phi.push_back(balance.log_g(u) - 0.5 * u - balance.log_g(0.0));
  }
  return phi;
}

double evals_per_chain(const Ensemble& ensemble) {
  double sum = 0.0;
  for (std::size_t c = 0; c < ensemble.num_chains(); ++c) sum += static_cast<double>(ensemble.evals(c).of_target());
  return sum / static_cast<double>(ensemble.num_chains());
}

double total_accepted(const Ensemble& ensemble) {
  double sum = 0.0;
  for (std::size_t c = 0; c < ensemble.num_chains(); ++c) sum += ensemble.accepted(c);
  return sum;
}

}  // namespace poise::reproduction
