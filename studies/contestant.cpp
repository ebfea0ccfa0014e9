/// Burn-in: plain, in two phases, or learning from the first step on.
#include "studies/contestant.hpp"

#include <algorithm>
#include <poise/extend/engines/tuner.hpp>

namespace poise::reproduction {

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

ContestantRun::ContestantRun(const Model& model, const Contestant& contestant, std::vector<TunableEngine> chains)
    : contestant_(contestant), sampler_(parse_sampler(contestant.sampler)) {
  TunableEngine joined = join(std::move(chains));
  engine_ = static_cast<JointEngine*>(joined.engine.get());
  RunOptions options;
  options.chains = engine_->traits().chains;
  options.threads = 1;  // the parts of an experiment have threads of their own
  run_ = std::make_unique<Run>(model, sampler_, options, std::move(joined));
}

BalancingFunction ContestantRun::burn_in(const BurnInPlan& plan) {
  const bool two_phases = sampler_.learns() && !sampler_.settings.paper_schedule;
  const std::uint64_t steps = two_phases ? 1 : contestant_.steps_per_iteration;
  return run_
      ->warm_up({.steps = plan.iterations * steps,
                 .learning = std::min(plan.learning, plan.iterations) * steps,
                 .average = two_phases})
      .function;
}

std::vector<double> tabulated(const BalancingFunction& balance) {
  std::vector<double> phi;
  for (int k = 0; k <= 128; ++k) {
    const double u = BalanceTable::grid(k);
    phi.push_back(balance.log_g(u) - 0.5 * u - balance.log_g(0.0));
  }
  return phi;
}

double evals_per_chain(const Engine& engine) {
  return static_cast<double>(total_evals(engine).of_target()) / static_cast<double>(engine.traits().chains);
}

std::vector<Value> levels_of(const Engine& engine, std::size_t chain) {
  std::vector<Value> x(engine.traits().variables);
  engine.observe({chain, 1}, {.levels = x});
  return x;
}

double log_prob_of(const Engine& engine, std::size_t chain) {
  double out = 0.0;
  engine.observe({chain, 1}, {.log_prob = {&out, 1}});
  return out;
}

Evals evals_of(const Engine& engine, std::size_t chain) {
  Evals out;
  engine.observe({chain, 1}, {.evals = {&out, 1}});
  return out;
}

}  // namespace poise::reproduction
