/// Single flips on graphs on a GPU: probabilities, steps against those of the host, the law, what is recorded. Skipped
/// where there is no GPU.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "engines/cuda/flips/graph_flip_chains.hpp"
#include "engines/rows.hpp"
#include "support/cuda/parity.hpp"
#include "support/exactness.hpp"
#include "support/flip_graphs.hpp"
#include "support/flip_probabilities.hpp"

namespace poise::cuda_graph_flips_test {

using namespace poise::testing;

class OnGpuGraphFlips : public OnGpu {};

using cuda::Held;

TEST_F(OnGpuGraphFlips, ProbabilitiesAreThoseOfTheCpu) {
  std::vector<IsingModel> models = small_flip_graphs();
  models.push_back(huge_ratios());
  for (const auto& [name, function] : all_balances()) {
    for (const IsingModel& model : models) {
      SCOPED_TRACE(model.name + ", " + name);
      const auto target = target_of(model);
      const std::size_t states = std::size_t{1} << model.variables;
      CudaGraphFlipChains chains({target, {}, std::vector<Value>(model.variables)}, states, 1, 0);
      chains.set_function(function);
      for (std::size_t s = 0; s < states; ++s) chains.set_levels(s, state_of_number(s, model.variables));
      const CudaGraphFlipChains::Probabilities found = chains.probabilities();
      expect_balance(*target, {found.proposal, found.acceptance});
      if (model.name != huge_ratios().name)
        expect_those_of_the_cpu(*target, function, {found.proposal, found.acceptance});
    }
  }
}

/// Steps of chains on a device and on the host, wherever the device keeps them; and counts of variables that are up.
void expect_steps_of_the_host(const IsingModel& model, const BalancingFunction& function, Held memory,
                              const std::vector<std::uint64_t>& calls) {
  constexpr std::uint64_t seed = 11, first_chain = 70;
  constexpr std::size_t count = 3;
  const Index n = model.variables;
  SCOPED_TRACE(std::to_string(n) + " variables, memory " + std::to_string(static_cast<int>(memory)));
  const auto target = target_of(model);
  CudaGraphFlipChains chains({target, {}, std::vector<Value>(n)}, count, seed, first_chain);
  chains.set_memory(memory);
  chains.set_function(function);
  for (std::size_t c = 0; c < count; ++c) chains.set_levels(c, random_levels(n, c));
  chains.start_counting();
  for (const std::uint64_t steps : calls) chains.advance(steps);
  for (std::size_t c = 0; c < count; ++c) {
    HostGraphChain host(*target, function, random_levels(n, c));
    std::vector<std::int64_t> up(n, 0);
    std::vector<Value> expected(n), found(n);
    for (std::uint64_t step = 0; step < chains.steps(); ++step) {
      if (n < 10000) {
        for (Index i = 0; i < n; ++i) up[i] += host.level(i);
      }
      host.step(seed, first_chain + c, step);
    }
    for (Index i = 0; i < n; ++i) expected[i] = host.level(i);
    chains.get_levels(c, found);
    ASSERT_EQ(expected, found);
    if (n < 10000) ASSERT_EQ(up, chains.up_counts(c));
  }
}

/// Only an exponential whose last digit is another one on the device could lead elsewhere, in one step of 10^14 or so.
TEST_F(OnGpuGraphFlips, StepsAreThoseOfTheHost) {
  const std::vector<NamedBalance> all = all_balances();
  for (const Held memory : {Held::all, Held::nodes, Held::none}) {
    for (const auto& [n, spokes] :
         {std::pair<Index, Index>{2, 1}, {5, 2}, {32, 31}, {33, 20}, {300, 299}, {1100, 3}, {3000, 70}}) {
      expect_steps_of_the_host(ring_with_hub(n, spokes), BalancingFunction(), memory, {1, 31, 33, 600});
    }
    for (const NamedBalance& one : all) {
      expect_steps_of_the_host(ring_with_hub(500, 40), one.balance, memory, {100, 7, 300});
    }
  }
}

TEST_F(OnGpuGraphFlips, LargeGraphsHaveTheStepsOfTheHost) {
  expect_steps_of_the_host(ring_with_hub(100000, 500), BalancingFunction(), Held::nodes, {50, 250});
  expect_steps_of_the_host(ring_with_hub(100000, 500), BalancingFunction(), Held::none, {300});
  expect_steps_of_the_host(ring_with_hub(1100000, 5), BalancingFunction(), Held::none, {200});
}

/// What one step leads to, counted, has the probabilities of the transition.
TEST_F(OnGpuGraphFlips, OneStepHasItsProbabilities) {
  constexpr std::size_t chains = 200000;
  for (const IsingModel& model : small_flip_graphs()) {
    SCOPED_TRACE(model.name);
    const Index n = model.variables;
    const StepProbabilities step = on_host(*target_of(model), BalancingFunction());
    const std::size_t states = std::size_t{1} << n;
    for (const std::size_t s : {std::size_t{0}, states / 3, states - 1}) {
      RunOptions options = short_run_on(Device::cuda, chains);
      options.start = Start::given;
      options.given = state_of_number(s, n);
      poise::Run run(ising_model(model), parse_sampler("lb:g=sqrt"), options);
      run.advance(1);
      const std::vector<Value> after = run.states();
      std::vector<double> count(n + 1, 0.0), expected(n + 1, 0.0);
      for (std::size_t c = 0; c < chains; ++c) {
        const std::size_t changed = number_of_state(std::span(after).subspan(c * n, n)) ^ s;
        ASSERT_LE(std::popcount(changed), 1);
        ++count[changed == 0 ? n : static_cast<std::size_t>(std::countr_zero(changed))];
      }
      for (Index i = 0; i < n; ++i) {
        expected[i] = chains * step.proposal[s * n + i] * step.acceptance[s * n + i] * n / (n + 1.0);  // it may rest
      }
      expected[n] = std::max(0.0, chains - std::accumulate(expected.begin(), expected.end(), 0.0));
      for (Index i = 0; i <= n; ++i) {
        EXPECT_NEAR(count[i], expected[i], 6.0 * std::sqrt(expected[i]) + 1.0) << s << ' ' << i;
      }
    }
  }
}

/// Where p is flat every change is accepted, and still draws a sweep apart are even and odd.
TEST_F(OnGpuGraphFlips, ParityIsNotThatOfSteps) {
  for (const Index n : {1U, 2U, 9U, 10U, 100U}) {
    const IsingModel flat = as_graph("flat", std::vector<double>(n, 0.0), {});
    expect_parity_of_a_sweep(ising_model(flat), "lb:g=sqrt");
  }
  expect_parity_of_a_sweep(ising_model(make_ising(parse_spec("ising:size=2x66,lambda=0,boundary=open"))), "lb");
}

TEST_F(OnGpuGraphFlips, StepsKeepTheLaw) {
  for (const IsingModel& model : small_flip_graphs()) {
    const StateSpace space = enumerate_states(*target_of(model));
    for (const char* sampler : {"lb:g=sqrt", "lb:g=barker", "lb:g=max"}) {
      const std::vector<double> count =
          counts_after(ising_model(model), parse_sampler(sampler), space.probabilities, 40);
      std::vector<double> expected = space.probabilities;
      const double sum = std::accumulate(count.begin(), count.end(), 0.0);
      for (double& e : expected) e *= sum;
      EXPECT_LT(std::abs(deviation(count, expected)), 6.0) << model.name << ' ' << sampler;
    }
  }
}

/// A chain does not depend on how many others there are, nor a run on where it was saved.
TEST_F(OnGpuGraphFlips, DependOnSeedAndChain) {
  const Model lattice = ising_model(make_ising(parse_spec("ising:size=70x66,lambda=0.4,mu=1,sigma=2,boundary=open")));
  for (const Model& model : {ising_model(ring_with_hub(900, 100)), lattice}) {
    RunOptions options = short_run_on(Device::cuda, 9);
    options.thin = 77;
    const Sampler sampler = parse_sampler("lb:g=barker");
    const RunResult whole = run(model, sampler, options);
    poise::Run first(model, sampler, options);
    first.warm_up();
    first.sample(5);
    poise::Run second(model, sampler, options);
    second.load(first.save());
    second.sample(7);
    const RunResult resumed = second.finish();
    EXPECT_EQ(whole.trace.x, resumed.trace.x);
    EXPECT_EQ(whole.trace.monitors, resumed.trace.monitors);
    EXPECT_EQ(whole.empirical_marginals, resumed.empirical_marginals);
    options.first_chain = 6;
    options.chains = 3;
    const RunResult part = run(model, sampler, options);
    EXPECT_TRUE(std::equal(part.trace.x.begin(), part.trace.x.end(),
                           whole.trace.x.end() - static_cast<std::ptrdiff_t>(part.trace.x.size())));
  }
}

TEST_F(OnGpuGraphFlips, AMillionChainsAreThoseOfFew) {
  const IsingModel model = small_flip_graphs().front();
  RunOptions options = short_run_on(Device::cuda, 1 << 20);
  options.start = Start::given;
  options.given = state_of_number(5, model.variables);
  options.keep = Keep::monitors;
  poise::Run all(ising_model(model), parse_sampler("lb"), options);
  all.advance(50);
  options.chains = 7;
  options.first_chain = (1 << 20) - 7;
  poise::Run last(ising_model(model), parse_sampler("lb"), options);
  last.advance(50);
  const std::vector<Value> of_all = all.states(), of_last = last.states();
  EXPECT_TRUE(std::equal(of_last.begin(), of_last.end(), of_all.end() - static_cast<std::ptrdiff_t>(of_last.size())));
}

/// What is recorded of a state is what the target says of it, to the last bit.
TEST_F(OnGpuGraphFlips, LogProbIsThatOfTheTarget) {
  const auto expect_recorded = [](const Model& model, const auto& target) {
    const RunResult result = run(model, parse_sampler("lb"), short_run_on(Device::cuda, 5));
    const Index n = target.num_variables();

    for (std::size_t k = 0; k < result.trace.x.size() / n; ++k) {
      std::vector<Value> levels;
      for (Index i = 0; i < n; ++i) levels.push_back(result.trace.x[k * n + i] > 0 ? 1 : 0);
      const auto state = target.make_state(levels);
      EXPECT_EQ(result.trace.monitors[0][k], target.log_prob(state));
    }
  };
  const IsingModel graph = ring_with_hub(9000, 100);  // more than a warp sums
  expect_recorded(ising_model(graph), *target_of(graph));
  for (const char* boundary : {"torus", "open"}) {
    const IsingModel ising =
        make_ising(parse_spec(std::string("ising:size=70x66,lambda=0.4,mu=1,sigma=2,boundary=") + boundary));
    const LatticeIsing target(ising.rows, ising.columns, ising.torus ? Boundary::torus : Boundary::open, ising.coupling,
                              ising.field);
    expect_recorded(ising_model(ising), target);
  }
}

TEST_F(OnGpuGraphFlips, LearnAsOnTheCpu) {
  const Model model = ising_model(ring_with_hub(200, 10));
  RunOptions options = short_run_on(Device::cuda, 16);
  options.warmup = 400;
  options.draws = 400;
  options.keep = Keep::monitors;
  const RunResult there = run(model, parse_sampler("lsb"), options);
  options.device = Device::cpu;
  const RunResult here = run(model, parse_sampler("lsb"), options);
  EXPECT_NEAR(there.acceptance_rate, here.acceptance_rate, 0.03);
  const auto mean = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  EXPECT_NEAR(mean(there.trace.monitors[0]) / mean(here.trace.monitors[0]), 1.0, 0.02);
}

TEST_F(OnGpuGraphFlips, TooManyChainsAreASentence) {
  EngineOptions options;
  options.device = Device::cuda;
  options.starts.assign(std::size_t{1} << 20, {});
  const Model model = ising_model(ring_with_hub(100000, 3));  // 800 GB of fields
  EXPECT_THROW((void)make_engine(model, parse_sampler("lb"), options), InputError);
}

}  // namespace poise::cuda_graph_flips_test
