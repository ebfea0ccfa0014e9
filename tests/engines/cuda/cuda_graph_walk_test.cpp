/// Single flips on graphs as a GPU makes them, on the host: probabilities against those of the CPU's kernel, sums that
/// are functions of the state, the device's own code with threads for lanes, and plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/cuda/host_warp.hpp"
#include "support/exactness.hpp"
#include "support/flip_graphs.hpp"
#include "support/flip_probabilities.hpp"

#include "engines/cuda/flips/graph_walk.cuh"

namespace poise::cuda_graph_walk_test {

using namespace poise::testing;

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

/// The steps of the device's own code, whose lanes are threads here.
TEST(CudaGraphFlips, StepsOfAWarpAreThoseOfTheHost) {
  constexpr std::uint64_t seed = 11, chain = 3, steps = 40;
  for (const auto& [n, spokes] : {std::pair<Index, Index>{5, 2}, {33, 32}, {300, 299}, {1100, 3}}) {
    SCOPED_TRACE(n);
    const auto target = target_of(ring_with_hub(n, spokes));
    HostGraphChain host(*target, BalancingFunction(), random_levels(n, 1));
    std::vector<cuda::SpinField> spin_fields(host.spin_fields().begin(), host.spin_fields().end());
    std::vector<double> leaves(host.leaves().begin(), host.leaves().end());
    std::vector<double> nodes(host.nodes().begin(), host.nodes().end());
    std::vector<std::uint32_t> state((n + 31) / 32, 0);
    for (Index i = 0; i < n; ++i) state[i / 32] |= std::uint32_t{host.level(i)} << i % 32;
    std::vector<std::int64_t> up(n, 0), expected_up(n, 0);
    const cuda::FlipGraph& graph = host.graph();
    const cuda::GraphView view{n,
                               graph.tree,
                               graph.first.data(),
                               graph.affected.data(),
                               graph.couplings.data(),
                               graph.first_node.data(),
                               graph.touched.data(),
                               nullptr};
    const cuda::GraphChainsView chains{.spin_fields = spin_fields.data(),
                                       .leaves = leaves.data(),
                                       .nodes = nodes.data(),
                                       .state = state.data(),
                                       .words = static_cast<std::uint32_t>(state.size()),
                                       .chains = 1,
                                       .accepted = nullptr,
                                       .up = up.data(),
                                       .first_chain = static_cast<std::uint64_t>(Stream::device) + chain,
                                       .seed = seed,
                                       .first_step = 0,
                                       .counted_from = 0,
                                       .stretch = cuda::rest_stretch(n)};
    cuda::HostWarp::run([&](unsigned lane) {
      cuda::Walk walk(view, host.weigher(), cuda::memory_of(view, chains, 0), lane);
      cuda::make_steps(walk, view, chains, {0, lane}, steps);
    });
    for (std::uint64_t step = 0; step < steps; ++step) {
      for (Index i = 0; i < n; ++i) expected_up[i] += host.level(i);
      host.step(seed, chain, step);
    }
    EXPECT_TRUE(std::ranges::equal(host.spin_fields(), spin_fields));
    EXPECT_TRUE(std::ranges::equal(host.leaves(), leaves));
    EXPECT_TRUE(std::ranges::equal(host.nodes(), nodes));
    for (Index i = 0; i < n; ++i) {
      ASSERT_EQ(state[i / 32] >> i % 32 & 1U, host.level(i));
      ASSERT_EQ(up[i] + (host.level(i) != 0 ? static_cast<std::int64_t>(steps) : 0), expected_up[i]);
    }
  }
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

}  // namespace poise::cuda_graph_walk_test
