/// Restricted Boltzmann machines: chain steps a second, 784 visible units and 16 chains on one core.
#include <benchmark/benchmark.h>

#include <cmath>
#include <memory>
#include <vector>

#include <poise/extend/engines/chain.hpp>
#include <poise/extend/kernels/block_gibbs.hpp>
#include <poise/extend/kernels/factorised_proposal.hpp>
#include <poise/extend/kernels/informed_proposal.hpp>
#include <poise/extend/kernels/path_proposal.hpp>
#include <poise/extend/learning/balancing_function.hpp>
#include <poise/run.hpp>
#include "kernels/rbm_gibbs.hpp"
#include "learning.hpp"
#include "random_rbm.hpp"
#include "tests/support/plain.hpp"

namespace {

using namespace poise;

std::shared_ptr<const Rbm> rbm(Index hidden) {
  static std::vector<std::pair<Index, std::shared_ptr<const Rbm>>> made;
  for (const auto& [size, rbm] : made) {
    if (size == hidden) return rbm;
  }
  made.emplace_back(hidden, std::make_shared<const Rbm>(random_rbm_weights(784, hidden)));
  return made.back().second;
}

/// A state that the RBM's own Gibbs has brought near equilibrium, which many changes a step would not leave zeros for.
std::vector<Value> near_equilibrium(const Rbm& target, std::uint64_t chain) {
  const RbmGibbs kernel(target);
  auto state = target.make_state(std::vector<Value>(target.num_variables(), 0));
  RbmGibbs::Scratch scratch(target);
  Rng rng(2, chain);
  kernel.prepare(target, state, scratch);
  for (int step = 0; step < 500; ++step) kernel.step(target, state, scratch, rng);
  return state.x;
}

template <class K>
void steps(benchmark::State& state, Index hidden, const K& kernel, std::size_t count, std::uint64_t batch) {
  const auto target = rbm(hidden);
  const std::vector<Value> zeros(784, 0);
  std::vector<std::unique_ptr<Chain<Rbm, K>>> chains;
  std::vector<Chain<Rbm, K>*> group;
  for (std::size_t c = 0; c < count; ++c) {
    chains.push_back(std::make_unique<Chain<Rbm, K>>(*target, near_equilibrium(*target, c), zeros, Rng(1, c)));
    group.push_back(chains.back().get());
    kernel.prepare(*target, group[c]->state, group[c]->scratch);
  }
  for (auto _ : state) advance<Rbm, K>(kernel, *target, group, batch);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * batch * count));
}

BalancingFunction frozen() {
  return BalancingFunction(std::make_shared<const BalanceTable>(std::vector<double>(BalanceTable::kPoints)));
}

Index hidden(const benchmark::State& state) { return static_cast<Index>(state.range(0)); }

void gwg(benchmark::State& state) {
  steps(state, hidden(state), InformedProposal<Rbm>(BalancingFunction(), Ratios::first_order), 16, 20);
}
void gwg_alone(benchmark::State& state) {
  steps(state, hidden(state), InformedProposal<Rbm>(BalancingFunction(), Ratios::first_order), 1, 20);
}
void gwg_frozen(benchmark::State& state) {
  steps(state, hidden(state), InformedProposal<Rbm>(frozen(), Ratios::first_order), 16, 20);
}
void plain_gwg(benchmark::State& state) { steps(state, hidden(state), PlainGradient(BalancingFunction()), 1, 2); }
void lb_rbm(benchmark::State& state) { steps(state, hidden(state), InformedProposal<Rbm>(BalancingFunction()), 16, 5); }
void gibbs_2(benchmark::State& state) { steps(state, hidden(state), BlockGibbs<Rbm>(2), 16, 50); }
void gibbs_10(benchmark::State& state) { steps(state, hidden(state), BlockGibbs<Rbm>(10), 16, 1); }
void hb_10_1(benchmark::State& state) { steps(state, hidden(state), HammingBall<Rbm>(10, 1), 16, 20); }
void hb_10_3(benchmark::State& state) { steps(state, hidden(state), HammingBall<Rbm>(10, 3), 16, 5); }
void rbm_gibbs(benchmark::State& state) { steps(state, hidden(state), RbmGibbs(*rbm(hidden(state))), 16, 20); }
void rbm_gibbs_every(benchmark::State& state) { steps(state, hidden(state), RbmGibbs(*rbm(hidden(state))), 16, 1); }
void rbm_gibbs_alone(benchmark::State& state) { steps(state, hidden(state), RbmGibbs(*rbm(hidden(state))), 1, 20); }
/// Many changes a step, at the step length at which as many are accepted as at the best one of an RBM trained on MNIST:
/// 40 a step.
constexpr double kTau = 0.15;
void dlmc(benchmark::State& state) {
  const BalancingFunction function(BalancingFunction::Kind::sqrt, std::log(kTau));
  steps(state, hidden(state), FactorisedProposal<Rbm>(FactorisedForm::relaxation, function, Ratios::first_order), 16,
        20);
}
void dlmc_frozen(benchmark::State& state) {
  const BalancingFunction function(
      std::make_shared<const BalanceTable>(std::vector<double>(BalanceTable::kPoints, std::log(kTau))));
  steps(state, hidden(state), FactorisedProposal<Rbm>(FactorisedForm::relaxation, function, Ratios::first_order), 16,
        20);
}
void dmala(benchmark::State& state) {
  const BalancingFunction function(BalancingFunction::Kind::sqrt, -2.5);
  steps(state, hidden(state), FactorisedProposal<Rbm>(FactorisedForm::langevin, function, Ratios::first_order), 16, 20);
}
void pas(benchmark::State& state) {
  const BalancingFunction function(BalancingFunction::Kind::sqrt, std::log(16.0));
  steps(state, hidden(state), PathProposal<Rbm>(function, Ratios::first_order), 16, 20);
}
BENCHMARK(dlmc)->Arg(250)->Arg(500);
BENCHMARK(dlmc_frozen)->Arg(250);
BENCHMARK(dmala)->Arg(250);
BENCHMARK(pas)->Arg(250);
BENCHMARK(gwg)->Arg(250)->Arg(500);
BENCHMARK(gwg_alone)->Arg(250);
BENCHMARK(gwg_frozen)->Arg(250)->Arg(500);
BENCHMARK(plain_gwg)->Arg(250);
BENCHMARK(lb_rbm)->Arg(250);
BENCHMARK(gibbs_2)->Arg(250);
BENCHMARK(gibbs_10)->Arg(250);
BENCHMARK(hb_10_1)->Arg(250);
BENCHMARK(hb_10_3)->Arg(250);
BENCHMARK(rbm_gibbs)->Arg(250)->Arg(500);
BENCHMARK(rbm_gibbs_every)->Arg(250);
BENCHMARK(rbm_gibbs_alone)->Arg(250);

/// Chain steps a second while the function is learned, in rounds of one update each, and at every step as in the paper.
void learning_rbm(benchmark::State& state, const char* sampler, std::size_t warmup, std::uint64_t thin) {
  time_learning(state, rbm_model("rbm", rbm(250)), sampler, warmup, thin);
}
BENCHMARK_CAPTURE(learning_rbm, flsb, "flsb", 50, 784)->UseManualTime()->Iterations(1);
BENCHMARK_CAPTURE(learning_rbm, flsb2_paper, "flsb2:objective=mi-bound,schedule=paper", 100, 1)
    ->UseManualTime()
    ->Iterations(1);

}  // namespace
