/// RBMs on a GPU: what kernels propose from keeps the distribution, and what they do is what they propose from. Skipped
/// where there is no GPU.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "engines/cuda/rbm/rbm_chains.hpp"
#include "support/cuda/on_gpu.hpp"
#include "support/cuda/parity.hpp"
#include "support/gradient_transitions.hpp"
#include "support/small_rbms.hpp"
#include "support/steps.hpp"

namespace poise::cuda_rbm_test {

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
    std::vector<BalancingFunction> functions = gradient_functions(many ? -0.7 : 0.0);
    for (const double level : {-4.0, 2.0}) {  // few proposals change anything, and steps of all lengths are too long
      if (many) functions.emplace_back(BalancingFunction::Kind::sqrt, level);
    }
    for (const BalancingFunction& function : functions) {
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
        const ExpectedStep expected = transitions.expected(from, kChains);
        EXPECT_LT(std::abs(deviation(count, expected.chains)), 6.0) << from;
        double summed = 0.0;
        for (const double a : step.accepted()) summed += a;
        EXPECT_NEAR(summed / kChains, expected.accepted, 0.01);
        ProposalCounts proposals;
        for (const ProposalCounts& one : step.proposals()) proposals += one;
        EXPECT_NEAR(proposals.count / kChains, expected.proposed, 3.0 / std::sqrt(kChains));
        EXPECT_NEAR(proposals.accepted, summed, 1e-6);
      }
    }
  }
}

/// A local step of chains that have made 31 others, counted, has its probabilities; acceptance counts it, and proposals
/// do not.
void expect_local_step(const RbmWeights& weights, Index few) {
  const Index n = weights.visible;
  // Units from `few` on are never on.
  const std::size_t states = std::size_t{1} << few;
  const auto whole = [&](std::size_t s) {
    std::vector<Value> x = state_of_number(s, few);
    x.resize(n, 0);
    return x;
  };
  TransitionMatrix one(states, std::vector<double>(states, 0.0));
  for (std::size_t s = 0; s < states; ++s) {
    one[s][s] = 1.0;
    for (Index i = 0; i < few; ++i) {
      const std::size_t other = s ^ std::size_t{1} << i;
      const double gain = plain_log_prob(weights, whole(other)) - plain_log_prob(weights, whole(s));
      one[s][other] = std::exp(std::min(0.0, gain)) / n;
      one[s][s] -= one[s][other];
    }
  }
  TransitionMatrix local = one;
  for (Index k = 1; k < cuda::local_tries(n); ++k) local = product(local, one);
  // With a block for each chain, and with a warp.
  for (const std::size_t chains : {std::size_t{2000}, std::size_t{100000}}) {
    for (const std::size_t from : {std::size_t{0}, states / 3, states - 1}) {
      CudaRbmChains step(weights, CudaGradientForm::relaxation, chains, 23 + from, 0);
      step.set_function(BalancingFunction(BalancingFunction::Kind::sqrt, -1.0));
      step.set_steps(cuda::kLocalEvery - 1);
      step.start_counting();
      for (std::size_t c = 0; c < chains; ++c) step.set_levels(c, whole(from));
      step.advance(1);
      std::vector<double> count(states, 0.0), expected = local[from];
      std::vector<Value> x(n);
      const CudaRbmChains::Sums sums = step.sums();
      double changed = 0.0;
      for (std::size_t c = 0; c < chains; ++c) {
        step.get_levels(c, x);
        std::size_t end = 0;
        for (Index i = 0; i < n; ++i) {
          ASSERT_TRUE(i < few || x[i] == 0);
          if (i < few) end |= std::size_t{x[i]} << i;
        }
        ++count[end];
        changed += end != from ? 1.0 : 0.0;
        if (c % 97 == 0) ASSERT_NEAR(sums.log_prob[c], plain_log_prob(weights, x), 1e-9);
      }
      for (double& e : expected) e *= static_cast<double>(chains);
      EXPECT_LT(std::abs(deviation(count, expected)), 6.0) << from;
      double summed = 0.0;
      for (const double a : step.accepted()) summed += a;
      EXPECT_EQ(summed, changed);
      for (const ProposalCounts& one_chain : step.proposals()) ASSERT_EQ(one_chain.accepted, 0.0);
      // What is known of the states is what is known of fresh ones, so steps go on as they would.
      CudaRbmChains fresh(weights, CudaGradientForm::relaxation, chains, 23 + from, 0);
      fresh.set_function(BalancingFunction(BalancingFunction::Kind::sqrt, -1.0));
      fresh.set_steps(step.steps());
      for (std::size_t c = 0; c < chains; ++c) {
        step.get_levels(c, x);
        fresh.set_levels(c, x);
      }
      EXPECT_EQ(step.law().log_prob, fresh.law().log_prob);
      EXPECT_EQ(step.law().proposal, fresh.law().proposal);
      step.advance(40);
      fresh.advance(40);
      std::vector<Value> y(n);
      for (std::size_t c = 0; c < chains; c += 11) {
        step.get_levels(c, x);
        fresh.get_levels(c, y);
        ASSERT_EQ(x, y);
      }
    }
  }
}

TEST_F(OnGpuRbm, LocalStepsHaveTheirProbabilities) {
  expect_local_step(random_rbm(7, 9, 0.9, 3), 7);
  RbmWeights wide = random_rbm(200, 150, 0.7, 4);  // three changes, more hidden units than a warp has at once
  for (Index i = 5; i < wide.visible; ++i) {
    wide.visible_bias[i] = -200.0F;
    for (Index j = 0; j < wide.hidden; ++j) wide.weights[j * wide.visible + i] *= 0.1F;
  }
  ASSERT_EQ(cuda::local_tries(wide.visible), 3U);
  expect_local_step(wide, 5);
}

/// Periods of 32 steps that are one graph of launches are the same steps as one by one, counts and all.
TEST_F(OnGpuRbm, StepsAreTheSameInOneCallAndInMany) {
  const RbmWeights weights = random_rbm(70, 40, 0.3, 5);
  for (const CudaGradientForm form : {CudaGradientForm::single, CudaGradientForm::relaxation}) {
    for (const std::size_t chains : {std::size_t{50}, std::size_t{2500}}) {
      const auto after = [&](const std::vector<std::uint64_t>& calls) {
        auto some = std::make_unique<CudaRbmChains>(weights, form, chains, 7, 0);
        some->set_function(BalancingFunction(BalancingFunction::Kind::sqrt, -1.0));
        for (std::size_t c = 0; c < chains; ++c) {
          some->set_levels(c, std::vector<Value>(weights.visible, static_cast<Value>(c % 2)));
        }
        some->start_counting();
        for (const std::uint64_t steps : calls) some->advance(steps);
        return some;
      };
      const auto whole = after({137});
      for (const std::vector<std::uint64_t>& calls :
           {std::vector<std::uint64_t>(137, 1), std::vector<std::uint64_t>{31, 1, 32, 3, 70},
            std::vector<std::uint64_t>{5, 90, 1, 41}}) {
        const auto parts = after(calls);
        std::vector<Value> x(weights.visible), y(weights.visible);
        for (std::size_t c = 0; c < chains; c += 7) {
          whole->get_levels(c, x);
          parts->get_levels(c, y);
          ASSERT_EQ(x, y) << c;
          ASSERT_EQ(whole->up_counts(c), parts->up_counts(c));
          ASSERT_EQ(whole->accepted(c), parts->accepted(c));
          ASSERT_EQ(whole->left_out(c).unchanged, parts->left_out(c).unchanged);
          ASSERT_EQ(whole->left_out(c).local_accepted, parts->left_out(c).local_accepted);
        }
      }
    }
  }
}

/// A unit that is as likely on as off, but whose gradient points back on either side: local steps take it there.
TEST_F(OnGpuRbm, GradientsThatAreFarOffDoNotHoldAVariable) {
  RbmWeights weights;
  weights.visible = 2;
  weights.hidden = 1;
  weights.weights = {60.0F, 0.0F};
  weights.visible_bias = {-30.0F, 0.0F};
  weights.hidden_bias = {-30.0F};
  constexpr std::size_t kChains = 4000;
  for (const CudaGradientForm form : {CudaGradientForm::relaxation, CudaGradientForm::langevin}) {
    CudaRbmChains chains(weights, form, kChains, 5, 0);
    chains.set_function(BalancingFunction());
    for (std::size_t c = 0; c < kChains; ++c) chains.set_levels(c, std::vector<Value>{0, 0});
    chains.advance(320);
    std::vector<Value> x(2);
    double on = 0.0;
    for (std::size_t c = 0; c < kChains; ++c) {
      chains.get_levels(c, x);
      on += x[0];
    }
    // A local step takes the unit in half of the cases, so after one of them it is on in half of the chains.
    EXPECT_NEAR(on, 0.5 * kChains, 6.0 * 0.5 * std::sqrt(kChains));
  }
}

/// Where p is flat every change is accepted, and still draws a sweep apart are even and odd.
TEST_F(OnGpuRbm, ParityIsNotThatOfSteps) {
  for (const Index n : {1U, 2U, 9U, 10U}) {
    RbmWeights flat = random_rbm(n, 3, 0.0, 1);
    std::fill(flat.visible_bias.begin(), flat.visible_bias.end(), 0.0F);
    expect_parity_of_a_sweep(model_of(flat), "gwg");
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
  for (const char* sampler : {"gwg", "gwg:g=barker", "dlmc:tau=0.5", "dlmc:g=max,tau=0.2", "dlmc:tau=3",
                              "dmala:alpha=0.4", "dmala:alpha=9"}) {
    const std::vector<double> count = counts_after(model_of(weights), parse_sampler(sampler), all.probability, 72);
    std::vector<double> expected = all.probability;
    for (double& e : expected) e *= 200000.0;
    EXPECT_LT(std::abs(deviation(count, expected)), 6.0) << sampler;
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

}  // namespace poise::cuda_rbm_test
