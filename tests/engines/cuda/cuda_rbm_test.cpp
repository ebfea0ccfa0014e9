/// RBMs on a GPU: what kernels propose from keeps the distribution, and what they do is what they propose from. Skipped
/// where there is no GPU.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "engines/cuda/rbm/rbm_chains.hpp"
#include "support/gradient_transitions.hpp"
#include "support/on_gpu.hpp"
#include "support/small_rbms.hpp"

namespace poise {
namespace {

using namespace poise::testing;

class OnGpuRbm : public OnGpu {};

Model model_of(const RbmWeights& weights) { return rbm_model("rbm", std::make_shared<const Rbm>(weights)); }

/// All states of an RBM, and their probabilities.
struct AllStates {
  explicit AllStates(const RbmWeights& weights) {
    double sum = 0.0;
    for (std::size_t s = 0; s < std::size_t{1} << weights.visible; ++s) {
      log_prob.push_back(plain_log_prob(weights, state_of_number(s, weights.visible)));
      sum += std::exp(log_prob.back());
    }
    for (const double log_p : log_prob) probability.push_back(std::exp(log_p) / sum);
  }
  std::vector<double> log_prob;
  std::vector<double> probability;
};

/// What proposals are drawn from is the law of the CPU, as far as gradients in half precision tell; log p is right in
/// single precision. One step of many chains, counted, has the probabilities that follow.
TEST_F(OnGpuRbm, StepsHaveTheirProbabilities) {
  const RbmWeights weights = random_rbm(7, 9, 0.9, 3);
  const AllStates all(weights);
  const Rbm target(weights);
  const Index n = weights.visible;
  const std::size_t states = all.probability.size();
  for (const CudaGradientForm form :
       {CudaGradientForm::single, CudaGradientForm::relaxation, CudaGradientForm::langevin}) {
    const bool many = form != CudaGradientForm::single;
    for (const BalancingFunction& function : gradient_functions(many ? -0.7 : 0.0)) {
      SCOPED_TRACE(std::to_string(static_cast<int>(form)) + ' ' + std::to_string(static_cast<int>(function.kind())));
      CudaRbmChains here(weights, form, states, 1, 0);
      here.set_function(function);
      for (std::size_t s = 0; s < states; ++s) here.set_levels(s, state_of_number(s, n));
      const CudaRbmChains::Law law = here.law();
      const CudaRbmChains::Sums sums = here.sums();
      for (std::size_t s = 0; s < states; ++s) {
        ASSERT_NEAR(law.log_prob[s], all.log_prob[s], 3e-6);
        ASSERT_NEAR(sums.log_prob[s], all.log_prob[s], 1e-10);
        ASSERT_EQ(sums.on[s], std::popcount(s));
        const Rbm::State state = target.make_state(state_of_number(s, n));
        const Rbm::State* const pointer = &state;
        std::vector<double> log_ratios(n + 8);
        double* const to = log_ratios.data();
        target.first_order_log_ratios(std::span(&pointer, 1), std::span<double* const>(&to, 1));
        expect_gradient_law(std::span(law.proposal).subspan(s * n, n), form, function, std::span(log_ratios).first(n),
                            0.01);
      }
      const GradientTransitions transitions(law.log_prob, law.proposal, many);
      constexpr std::size_t kChains = 100000;
      for (const std::size_t from : {std::size_t{0}, states / 3, states - 1}) {
        CudaRbmChains step(weights, form, kChains, 17 + from, 0);
        step.set_function(function);
        for (std::size_t c = 0; c < kChains; ++c) step.set_levels(c, state_of_number(from, n));
        step.advance(1);
        std::vector<double> count(states, 0.0);
        std::vector<Value> x(n);
        for (std::size_t c = 0; c < kChains; ++c) {
          step.get_levels(c, x);
          ++count[number_of_state(x)];
        }
        double accepted = 0.0;
        const std::vector<double> expected = transitions.expected(from, kChains, accepted);
        EXPECT_LT(deviation(count, expected), 5.0) << from;
        double summed = 0.0;
        for (const double a : step.accepted()) summed += a;
        EXPECT_NEAR(summed / kChains, accepted, 0.01);
      }
    }
  }
}

/// Tiles of all shapes, and rows wherever they are: chains are the same.
TEST_F(OnGpuRbm, ChainsDoNotDependOnTheirCompany) {
  const RbmWeights weights = random_rbm(300, 150, 0.2, 5);
  for (const CudaGradientForm form : {CudaGradientForm::single, CudaGradientForm::relaxation}) {
    const auto states_of = [&](std::size_t chains, std::uint64_t first) {
      CudaRbmChains some(weights, form, chains, 7, first);
      some.set_function(BalancingFunction(BalancingFunction::Kind::sqrt, -1.0));
      for (std::size_t c = 0; c < chains; ++c) {
        std::vector<Value> x(weights.visible);
        Rng rng(4, first + c);
        for (Value& level : x) level = rng.uniform() < 0.5 ? 1 : 0;
        some.set_levels(c, x);
      }
      some.advance(120);
      std::vector<Value> all(chains * weights.visible);
      for (std::size_t c = 0; c < chains; ++c) {
        some.get_levels(c, std::span(all).subspan(c * weights.visible, weights.visible));
      }
      return all;
    };
    const std::vector<Value> many = states_of(2500, 0);
    for (const auto& [chains, first] : {std::pair<std::size_t, std::uint64_t>{1, 0}, {16, 5}, {70, 0}, {700, 1800}}) {
      const std::vector<Value> few = states_of(chains, first);
      EXPECT_TRUE(
          std::equal(few.begin(), few.end(), many.begin() + static_cast<std::ptrdiff_t>(first * weights.visible)))
          << chains;
    }
  }
}

TEST_F(OnGpuRbm, StepsKeepTheLaw) {
  const RbmWeights weights = random_rbm(8, 6, 1.2, 8);
  const AllStates all(weights);
  for (const char* sampler : {"gwg", "gwg:g=barker", "dlmc:tau=0.5", "dlmc:g=max,tau=0.2", "dmala:alpha=0.4"}) {
    const std::vector<double> count = counts_after(model_of(weights), parse_sampler(sampler), all.probability, 40);
    std::vector<double> expected = all.probability;
    for (double& e : expected) e *= 200000.0;
    EXPECT_LT(deviation(count, expected), 5.0) << sampler;
  }
}

/// What is saved goes on, counts and all; marginals and acceptance are what the draws say.
TEST_F(OnGpuRbm, GoesOnFromAState) {
  const Model model = model_of(random_rbm(40, 20, 0.4, 2));
  for (const char* spec : {"gwg", "dlmc:tau=0.3", "flsb", "dlsb"}) {
    const Sampler sampler = parse_sampler(spec);
    RunOptions options = short_run_on(Device::cuda, 20);
    options.warmup = 30;
    options.thin = 3;
    options.rao_blackwell = true;
    const RunResult whole = run(model, sampler, options);
    poise::Run first(model, sampler, options);
    first.warm_up();
    first.sample(5);
    poise::Run second(model, sampler, options);
    second.load(first.save());
    second.sample(7);
    const RunResult resumed = second.finish();
    EXPECT_EQ(whole.trace.x, resumed.trace.x) << spec;
    EXPECT_EQ(whole.trace.monitors, resumed.trace.monitors) << spec;
    EXPECT_EQ(whole.empirical_marginals, resumed.empirical_marginals) << spec;
  }
}

TEST_F(OnGpuRbm, MarginalsAreThoseOfTheSteps) {
  const RbmWeights weights = random_rbm(10, 8, 0.8, 6);
  const AllStates all(weights);
  std::vector<double> exact(weights.visible, 0.0);
  for (std::size_t s = 0; s < all.probability.size(); ++s) {
    for (Index i = 0; i < weights.visible; ++i) exact[i] += (s >> i & 1) != 0 ? all.probability[s] : 0.0;
  }
  for (const char* spec : {"gwg", "flsb", "dlmc", "dlsb", "dmala"}) {
    RunOptions options = short_run_on(Device::cuda, 500);
    options.warmup = 200;
    options.draws = 400;
    options.keep = Keep::monitors;
    const RunResult result = run(model_of(weights), parse_sampler(spec), options);
    for (Index i = 0; i < weights.visible; ++i) {
      EXPECT_NEAR(result.empirical_marginals[i], exact[i], 0.01) << spec << ' ' << i;
    }
    EXPECT_GT(result.acceptance_rate, 0.2) << spec;
  }
}

TEST_F(OnGpuRbm, RefusesWhatDoesNotRunThere) {
  const Model model = model_of(random_rbm(10, 8, 0.8, 6));
  EXPECT_THROW(poise::Run(model, parse_sampler("gibbs"), short_run_on(Device::cuda, 4)), InputError);
  EXPECT_THROW(poise::Run(model, parse_sampler("pas"), short_run_on(Device::cuda, 4)), InputError);
}

}  // namespace
}  // namespace poise
