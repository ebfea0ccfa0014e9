/// Single flips on graphs, as a GPU makes them: on the host, probabilities against those of the CPU's kernel and sums
/// that are functions of the state; and on a device, where there is one, the same steps as on the host.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

#ifdef POISE_CUDA
#include <poise/cuda/graph_flip_chains.hpp>
#endif
#include <poise/kernel/locally_balanced.hpp>
#include "../src/cuda/graph_flip_plan.hpp"
#include "support/exactness.hpp"
#include "support/flip_graphs.hpp"
#include "support/host_graph_flips.hpp"
#include "support/on_gpu.hpp"

namespace poise {
namespace {

using namespace poise::testing;

std::vector<Value> random_levels(Index n, std::uint64_t seed) {
  Rng rng(seed, 3);
  std::vector<Value> levels(n);
  for (Value& level : levels) level = rng.uniform() < 0.5 ? 0 : 1;
  return levels;
}

/// What a step from each state has: [state][variable].
struct StepProbabilities {
  std::vector<double> proposal;
  std::vector<double> acceptance;
};

StepProbabilities on_host(const GraphIsing& target, const BalancingFunction& function) {
  const Index n = target.num_variables();
  StepProbabilities out;
  for (std::size_t s = 0; s < std::size_t{1} << n; ++s) {
    HostGraphChain chain(target, function, state_of_number(s, n));
    for (Index i = 0; i < n; ++i) {
      out.proposal.push_back(chain.leaves()[i] / chain.total());
      out.acceptance.push_back(chain.acceptance(i));
    }
  }
  return out;
}

void expect_those_of_the_cpu(const GraphIsing& target, const BalancingFunction& function,
                             const StepProbabilities& found) {
  const Index n = target.num_variables();
  const LocallyBalanced<GraphIsing> kernel(function);
  LocallyBalanced<GraphIsing>::Scratch scratch(target);
  for (std::size_t s = 0; s < std::size_t{1} << n; ++s) {
    const auto state = target.make_state(state_of_number(s, n));
    kernel.prepare(target, state, scratch);
    for (Index i = 0; i < n; ++i) {
      const auto proposal = kernel.evaluate(target, state, scratch, i);
      ASSERT_NEAR(found.proposal[s * n + i], proposal.prob, 1e-12) << s << ' ' << i;
      ASSERT_NEAR(found.acceptance[s * n + i], proposal.accept_prob, 1e-12) << s << ' ' << i;
    }
  }
}

void expect_balance(const GraphIsing& target, const StepProbabilities& found) {
  const Index n = target.num_variables();
  const StateSpace space = enumerate_states(target);
  for (std::size_t s = 0; s < space.size(); ++s) {
    for (Index i = 0; i < n; ++i) {
      const std::size_t other = s ^ std::size_t{1} << i;
      const double there = space.probabilities[s] * found.proposal[s * n + i] * found.acceptance[s * n + i];
      const double back = space.probabilities[other] * found.proposal[other * n + i] * found.acceptance[other * n + i];
      ASSERT_NEAR(there, back, 1e-12) << s << ' ' << i;
    }
  }
}

TEST(CudaGraphFlips, ProbabilitiesAreThoseOfTheCpu) {
  for (const auto& [name, function] : all_balances()) {
    for (const IsingModel& model : small_flip_graphs()) {
      SCOPED_TRACE(model.name + ", " + name);
      const StepProbabilities found = on_host(*target_of(model), function);
      expect_those_of_the_cpu(*target_of(model), function, found);
      expect_balance(*target_of(model), found);
    }
  }
}

TEST(CudaGraphFlips, HugeRatiosAreBalanced) {
  const auto target = target_of(huge_ratios());
  for (const auto& [name, function] : all_balances()) {
    SCOPED_TRACE(name);
    const StepProbabilities found = on_host(*target, function);
    for (const double p : found.proposal) ASSERT_GT(p, 0.0);
    expect_balance(*target, found);
  }
}

/// A table may fall by more than doubles can tell within a cell.
TEST(CudaGraphFlips, WeightsOfSteepTablesAreNormalNumbers) {
  for (const double drop : {-3.0, -60.0, -800.0, 60.0, 650.0}) {
    std::vector<double> phi;
    for (int k = 0; k < BalanceTable::kPoints; ++k) phi.push_back(k < 9 ? 0.0 : drop);
    const BalancingFunction function(std::make_shared<const BalanceTable>(phi));
    cuda::FlipWeigher weigher = cuda::make_flip_weigher(function, 0.001);
    const std::vector<cuda::FlipCell> cells = cuda::flip_cells(*function.table());
    weigher.cells = cells.data();
    for (std::int64_t field = -1000000; field <= 1000000; field += 97) {
      const double there = cuda::weight(weigher, 2 * field), back = cuda::weight(weigher, 2 * field + 1);
      ASSERT_TRUE(there > 1e-300 && there < 1e300) << drop << ' ' << field;
      const double u = cuda::log_ratio(weigher, 2 * field);
      ASSERT_NEAR(std::log(there) - std::log(back), u - cuda::beyond(weigher, u), 1e-9) << drop << ' ' << field;
    }
  }
}

/// However a state was reached, its fields, weights and sums are the same bits; and its levels are those of the fields.
TEST(CudaGraphFlips, SumsAreFunctionsOfTheState) {
  for (const auto& [n, spokes] :
       {std::pair<Index, Index>{5, 2}, {32, 31}, {33, 20}, {300, 299}, {1100, 3}, {40000, 70}}) {
    SCOPED_TRACE(n);
    const auto target = target_of(ring_with_hub(n, spokes));
    for (const auto kind : {BalancingFunction::Kind::sqrt, BalancingFunction::Kind::barker}) {
      HostGraphChain chain(*target, BalancingFunction(kind), random_levels(n, 1));
      for (std::uint64_t step = 0; step < 600; ++step) chain.step(5, 2, step);
      chain.propose(0);
      chain.take(0);
      std::vector<Value> levels(n);
      for (Index i = 0; i < n; ++i) levels[i] = chain.level(i);
      EXPECT_NE(levels, random_levels(n, 1));
      const HostGraphChain fresh(*target, BalancingFunction(kind), levels);
      EXPECT_TRUE(std::ranges::equal(chain.spin_fields(), fresh.spin_fields()));
      EXPECT_TRUE(std::ranges::equal(chain.leaves(), fresh.leaves()));
      EXPECT_TRUE(std::ranges::equal(chain.nodes(), fresh.nodes()));
    }
  }
}

TEST(CudaGraphFlips, PlacesAreFound) {
  for (const Index n : {1U, 31U, 33U, 1025U, 33000U}) {
    const auto target = target_of(as_graph("alone", random_field(n, 1.0, 3), {}));
    const HostGraphChain chain(*target, BalancingFunction(), random_levels(n, 2));
    double before = 0.0;
    for (Index i = 0; i < n; before += chain.leaves()[i++]) {
      ASSERT_EQ(chain.find(before + 0.5 * chain.leaves()[i]), i) << n;
    }
    EXPECT_NEAR(chain.total() / before, 1.0, 1e-12);
    EXPECT_EQ(chain.find(0.0), 0U);
    EXPECT_EQ(chain.find(2.0 * chain.total()), n - 1);
  }
}

TEST(CudaGraphFlips, StepsKeepTheLaw) {
  constexpr std::size_t chains = 20000;
  const IsingModel model = small_flip_graphs().front();
  const auto target = target_of(model);
  const StateSpace space = enumerate_states(*target);
  std::vector<double> count(space.size(), 0.0), expected;
  Rng rng(3, 4);
  for (std::size_t c = 0; c < chains; ++c) {
    double rest = rng.uniform();
    std::size_t s = 0;
    while (s + 1 < space.size() && rest >= space.probabilities[s]) rest -= space.probabilities[s++];
    HostGraphChain chain(*target, BalancingFunction(), space.states[s]);
    for (std::uint64_t step = 0; step < 12; ++step) chain.step(7, c, step);
    std::vector<Value> levels(model.variables);
    for (Index i = 0; i < model.variables; ++i) levels[i] = chain.level(i);
    ++count[space.number(levels)];
  }
  for (const double p : space.probabilities) expected.push_back(chains * p);
  EXPECT_LT(std::abs(deviation(count, expected)), 6.0);
}

TEST(CudaGraphFlips, PlansFitTheDevice) {
  const cuda::DeviceShape large{132, 227 * 1024, 228 * 1024}, small{40, 64 * 1024, 64 * 1024};
  const auto plan = [](Index variables, std::size_t chains, const cuda::DeviceShape& device) {
    const cuda::GraphFlipPlan found = cuda::plan_graph_flips({chains, cuda::make_flip_tree(variables), 7.0}, device);
    EXPECT_TRUE(found.fits);
    EXPECT_LE(found.shared_bytes, device.shared_per_block);
    return found.held;
  };
  for (const std::size_t chains : {1, 1000, 10000}) {
    EXPECT_EQ(plan(9, chains, large), cuda::Held::all);
    EXPECT_EQ(plan(1000, chains, large), cuda::Held::all);
    EXPECT_EQ(plan(1000000, chains, large), cuda::Held::none);
    EXPECT_EQ(plan(1000000, chains, small), cuda::Held::none);
  }
  EXPECT_EQ(plan(10000, 100, large), cuda::Held::all);
  EXPECT_EQ(plan(10000, 10000, large), cuda::Held::nodes);
  EXPECT_EQ(plan(10000, 100, small), cuda::Held::nodes);
  EXPECT_EQ(plan(100000, 100, large), cuda::Held::nodes);
}

class OnGpuGraphFlips : public OnGpu {};

#ifdef POISE_CUDA

using Memory = CudaGraphFlipChains::Memory;

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
void expect_steps_of_the_host(const IsingModel& model, const BalancingFunction& function, Memory memory,
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
  for (const Memory memory : {Memory::all_shared, Memory::sums_shared, Memory::global}) {
    for (const auto& [n, spokes] :
         {std::pair<Index, Index>{2, 1}, {5, 2}, {32, 31}, {33, 20}, {300, 299}, {1100, 3}, {5000, 70}}) {
      expect_steps_of_the_host(ring_with_hub(n, spokes), BalancingFunction(), memory, {1, 31, 33, 600});
    }
    for (const NamedBalance& one : all) {
      expect_steps_of_the_host(ring_with_hub(500, 40), one.balance, memory, {100, 7, 300});
    }
  }
}

TEST_F(OnGpuGraphFlips, LargeGraphsHaveTheStepsOfTheHost) {
  expect_steps_of_the_host(ring_with_hub(100000, 500), BalancingFunction(), Memory::sums_shared, {50, 250});
  expect_steps_of_the_host(ring_with_hub(100000, 500), BalancingFunction(), Memory::global, {300});
  expect_steps_of_the_host(ring_with_hub(1100000, 5), BalancingFunction(), Memory::global, {200});
}

#endif

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
      for (Index i = 0; i < n; ++i) expected[i] = chains * step.proposal[s * n + i] * step.acceptance[s * n + i];
      expected[n] = std::max(0.0, chains - std::accumulate(expected.begin(), expected.end(), 0.0));
      for (Index i = 0; i <= n; ++i) {
        EXPECT_NEAR(count[i], expected[i], 6.0 * std::sqrt(expected[i]) + 1.0) << s << ' ' << i;
      }
    }
  }
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

}  // namespace
}  // namespace poise
