/// Sums over all chains of an engine, and how they are shared out.
#include <poise/extend/engines/engine.hpp>

#include <fmt/format.h>

#include <stdexcept>

#include <poise/extend/engines/division.hpp>
#include <poise/extend/engines/states.hpp>

namespace poise {

std::vector<ChainGroup> Engine::share_out(unsigned threads) {
  return group_chains(traits_.chains, threads, traits_.group);
}

void Engine::advance_and_observe(ChainGroup group, std::uint64_t steps, std::span<const Observables> draws) {
  for (const Observables& draw : draws) {
    advance(group, steps);
    observe(group, draw);
  }
}

void Engine::exchange(std::size_t, Engine&) { throw std::logic_error("these chains exchange no states"); }

std::string no_start(std::uint64_t chain, unsigned attempts) {
  if (attempts == 0) {
    return "the initial state has probability zero, and from there a chain cannot start: give it another (init)";
  }
  return fmt::format(
      "no state of positive probability was found for chain {} to start from: its initial state, the lowest and the "
      "highest level of every variable, and {} random states were tried; give it one (init)",
      chain, attempts - 2);
}

double total_accepted(const Engine& engine) {
  std::vector<double> accepted(engine.traits().chains);
  observe_all(engine, {0, accepted.size()}, {.accepted = accepted});
  double sum = 0.0;
  for (const double one : accepted) sum += one;
  return sum;
}

double mean_log_prob(const Engine& engine) {
  std::vector<double> log_prob(engine.traits().chains);
  observe_all(engine, {0, log_prob.size()}, {.log_prob = log_prob});
  double sum = 0.0;
  for (const double one : log_prob) sum += one;
  return sum / static_cast<double>(log_prob.size());
}

Evals total_evals(const Engine& engine) {
  std::vector<Evals> evals(engine.traits().chains);
  observe_all(engine, {0, evals.size()}, {.evals = evals});
  Evals sum;
  for (const Evals& one : evals) sum += one;
  return sum;
}

}  // namespace poise
