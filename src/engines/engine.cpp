/// Sums over all chains of an engine, and how they are shared out.
#include <poise/extend/engines/engine.hpp>

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include <poise/extend/engines/chain.hpp>
#include <poise/extend/engines/division.hpp>

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

ProposalCounts total_proposals(const Engine& engine) {
  std::vector<ProposalCounts> proposals(engine.traits().chains);
  observe_all(engine, {0, proposals.size()}, {.proposals = proposals});
  ProposalCounts sum;
  for (const ProposalCounts& one : proposals) sum += one;
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

std::vector<ChainGroup> group_chains(std::size_t chains, unsigned threads, std::size_t most) {
  const std::size_t rounds = std::max<std::size_t>(1, (chains + most * threads - 1) / (most * threads));
  const std::size_t number = std::min(chains, rounds * threads);
  std::vector<ChainGroup> groups;
  for (std::size_t g = 0; g < number; ++g) {
    const std::size_t first = chains * g / number;
    groups.push_back({first, chains * (g + 1) / number - first});
  }
  return groups;
}

std::vector<ChainGroup> group_words(std::size_t chains, std::uint64_t first_chain, unsigned threads, WordShape shape) {
  const std::uint64_t first_word = first_chain / shape.chains;
  const std::uint64_t words = (first_chain + chains - 1) / shape.chains - first_word + 1;
  if (words < threads) return group_chains(chains, threads, shape.chains);
  std::vector<ChainGroup> groups;
  for (const ChainGroup& some : group_chains(static_cast<std::size_t>(words), threads, shape.most_words)) {
    const std::uint64_t begin = std::max<std::uint64_t>(first_chain, (first_word + some.first) * shape.chains);
    const std::uint64_t end =
        std::min<std::uint64_t>(first_chain + chains, (first_word + some.first + some.count) * shape.chains);
    groups.push_back({static_cast<std::size_t>(begin - first_chain), static_cast<std::size_t>(end - begin)});
  }
  return groups;
}

}  // namespace poise
