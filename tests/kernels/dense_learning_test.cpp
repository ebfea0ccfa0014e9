/// Learning where every move changes every ratio: gradients against differences, and samplers that learn on an RBM.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <poise/extend/learning/balancing_function.hpp>
#include <poise/extend/learning/transition_gradient.hpp>
#include <poise/extend/learning/transition_gradient_block.hpp>
#include <poise/extend/learning/transition_gradient_single.hpp>
#include <poise/run.hpp>
#include "support/enumerate.hpp"
#include "support/small_rbms.hpp"
#include "support/table_target.hpp"

namespace poise::dense_learning_test {

using namespace poise::testing;

/// The sum of c_k Q_k A over all moves, with A the exact mean acceptance.
double weighted_transitions(const Rbm& target, const Rbm::State& state, const std::vector<double>& phi, Ratios ratios,
                            const std::vector<double>& c) {
  const InformedProposal<Rbm> kernel(BalancingFunction(std::make_shared<const BalanceTable>(phi)), ratios);
  InformedProposal<Rbm>::Scratch scratch(target);
  kernel.prepare(target, state, scratch);
  double by_proposal = 0.0;
  double acceptance = 0.0;
  for (Index m = 0; m < target.num_moves(); ++m) {
    const auto looked = kernel.evaluate(target, state, scratch, m);
    by_proposal += c[m] * looked.prob;
    acceptance += looked.prob * looked.accept_prob;
  }
  return by_proposal * acceptance;
}

// The estimate rests on proposals drawn from Q; its mean over Q is the gradient.
TEST(DenseLearning, GradientIsThatOfTransitionProbabilities) {
  const Rbm target(random_rbm(6, 5, 1.5, 3));
  const auto state = target.make_state(Levels{1, 0, 1, 1, 0, 0});
  const std::vector<double> c = {0.3, -1.0, 0.7, 2.0, 0.1, -0.4};
  std::vector<double> phi(BalanceTable::kPoints);
  for (std::size_t k = 0; k < phi.size(); ++k) phi[k] = -0.1 * std::sqrt(0.125 * static_cast<double>(k));
  for (const Ratios ratios : {Ratios::first_order, Ratios::exact}) {
    const InformedProposal<Rbm> kernel(BalancingFunction(std::make_shared<const BalanceTable>(phi)), ratios);
    InformedProposal<Rbm>::Scratch scratch(target);
    kernel.prepare(target, state, scratch);
    std::vector<double> gradient(phi.size(), 0.0);
    for (Index probe = 0; probe < 6; ++probe) {
      const auto looked = kernel.evaluate(target, state, scratch, probe);
      TransitionGradient one;
      one.probes = {{probe, looked.accept_prob}};
      for (Index m = 0; m < 6; ++m) {
        const double q = scratch.here.weights[m] / scratch.here.total;
        one.entries.push_back({m, m, 0, 0.0, looked.accept_prob, q * looked.accept_prob});
      }
      std::vector<double> part(phi.size(), 0.0);
      add_gradient(kernel, target, state, scratch, one, c, part);
      for (std::size_t k = 0; k < phi.size(); ++k) gradient[k] += looked.prob * part[k];
    }
    for (std::size_t k = 0; k < 60; ++k) {
      constexpr double h = 1e-6;
      std::vector<double> up = phi;
      std::vector<double> down = phi;
      up[k] += h;
      down[k] -= h;
      const double difference =
          (weighted_transitions(target, state, up, ratios, c) - weighted_transitions(target, state, down, ratios, c)) /
          (2 * h);
      ASSERT_NEAR(gradient[k], difference, 1e-7) << "at grid point " << k;
    }
  }
}

/// The sum of c_e times how often the level of entry e is taken, over the blocks that a scratch has looked at.
template <class T>
double weighted_block_transitions(const T& target, const typename T::State& state, const std::vector<double>& phi,
                                  const std::vector<double>& c) {
  const BlockBalanced<T> kernel(BalancingFunction(std::make_shared<const BalanceTable>(phi)), 3);
  typename BlockBalanced<T>::Scratch scratch(target);
  kernel.prepare(target, state, scratch);
  Rng rng(9, 9);
  TransitionGradient observed;
  transition_gradient(kernel, target, state, scratch, rng, {}, observed);
  double sum = 0.0;
  for (std::size_t e = 0; e < c.size(); ++e) sum += c[e] * observed.entries[e].transition;
  return sum;
}

template <class T>
void expect_block_gradient(const T& target, const Levels& x) {
  const auto state = target.make_state(x);
  std::vector<double> c(target.num_moves());
  for (std::size_t e = 0; e < c.size(); ++e) c[e] = std::cos(3.0 * static_cast<double>(e));
  std::vector<double> phi(BalanceTable::kPoints);
  for (std::size_t k = 0; k < phi.size(); ++k) phi[k] = -0.1 * std::sqrt(0.125 * static_cast<double>(k));
  const BlockBalanced<T> kernel(BalancingFunction(std::make_shared<const BalanceTable>(phi)), 3);
  typename BlockBalanced<T>::Scratch scratch(target);
  kernel.prepare(target, state, scratch);
  Rng rng(9, 9);
  TransitionGradient observed;
  transition_gradient(kernel, target, state, scratch, rng, {}, observed);
  ASSERT_GT(scratch.looks.size(), 1U);
  std::vector<double> gradient(phi.size(), 0.0);
  add_gradient(kernel, target, state, scratch, observed, c, gradient);
  for (std::size_t k = 1; k < 60; ++k) {
    constexpr double h = 1e-6;
    std::vector<double> up = phi;
    std::vector<double> down = phi;
    up[k] += h;
    down[k] -= h;
    const double difference =
        (weighted_block_transitions(target, state, up, c) - weighted_block_transitions(target, state, down, c)) /
        (2 * h);
    ASSERT_NEAR(gradient[k], difference, 1e-7) << "at grid point " << k;
  }
}
TEST(BlockLearning, GradientIsThatOfTransitionProbabilities) {
  expect_block_gradient(Rbm(random_rbm(6, 5, 1.5, 3)), {1, 0, 1, 1, 0, 0});
  expect_block_gradient(TableTarget::random({3, 2, 1, 4, 2}, 3.0, 5), {2, 0, 0, 1, 1});
  const TableTarget zeros = TableTarget::random({2, 3, 2, 3}, 2.0, 6, 8);
  const auto states = all_states(zeros);
  const auto p = probabilities(zeros, states);
  expect_block_gradient(zeros, states[static_cast<std::size_t>(std::max_element(p.begin(), p.end()) - p.begin())]);
}

std::vector<double> means(const Rbm& target) {
  const auto states = all_states(target);
  const auto p = probabilities(target, states);
  std::vector<double> mean(target.num_variables(), 0.0);
  for (std::size_t s = 0; s < states.size(); ++s) {
    for (Index i = 0; i < mean.size(); ++i) mean[i] += p[s] * states[s][i];
  }
  return mean;
}

// Every sampler there is for an RBM, by name, against enumeration.
TEST(DenseLearning, EverySamplerFindsTheMeansOfAMachine) {
  const auto rbm = std::make_shared<const Rbm>(random_rbm(8, 5, 0.8, 5));
  const Model model = rbm_model("rbm", rbm);
  const std::vector<double> truth = means(*rbm);
  for (const char* name :
       {"gwg", "gwg:g=barker", "flsb", "flsb1", "flsb2", "flsb2:net=monotone,blocks=3,units=3",
        "flsb:objective=entropy", "flsb2:objective=mi-bound,schedule=paper", "lb", "lsb", "lsb1", "lb:block=2,g=barker",
        "lsb:block=3", "gibbs", "gibbs:block=2", "gibbs:block=4", "hb:block=4,radius=2", "rbm-gibbs"}) {
    SCOPED_TRACE(name);
    RunOptions options;
    options.chains = 4;
    options.warmup = std::string(name).find("paper") == std::string::npos ? 300 : 20;
    options.draws = 3000;
    options.rao_blackwell = true;
    const RunResult result = run(model, parse_sampler(name), options);
    for (Index i = 0; i < truth.size(); ++i) {
      EXPECT_NEAR(result.rao_blackwell[i], truth[i], 6.0 * result.rao_blackwell_mcse[i] + 1e-3);
      EXPECT_NEAR(result.empirical_marginals[i], truth[i], 0.05);
    }
  }
}

TEST(DenseLearning, ChainsDoNotDependOnThreadsOrCompany) {
  const Model model = rbm_model("rbm", std::make_shared<const Rbm>(random_rbm(20, 9, 0.5, 6)));
  for (const char* name : {"gwg", "flsb", "hb:block=5,radius=2", "rbm-gibbs"}) {
    RunOptions options;
    options.chains = 5;
    options.warmup = 20;
    options.draws = 30;
    options.threads = 1;
    const RunResult one = run(model, parse_sampler(name), options);
    options.threads = 2;
    EXPECT_EQ(run(model, parse_sampler(name), options).trace.x, one.trace.x) << name;
    if (std::string(name) == "flsb") continue;  // learning pools chains
    options.chains = 1;
    options.first_chain = 3;
    const RunResult alone = run(model, parse_sampler(name), options);
    const std::size_t size = 30 * 20;
    EXPECT_TRUE(std::equal(alone.trace.x.begin(), alone.trace.x.end(), one.trace.x.begin() + 3 * size)) << name;
  }
}

}  // namespace poise::dense_learning_test
