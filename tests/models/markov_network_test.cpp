/// Networks as targets: against the product of their tables, and exact transition matrices of every kernel on them.
#include <gtest/gtest.h>

#include <cmath>

#include "models/network/markov_network.hpp"
#include "support/conformance.hpp"
#include "support/exactness.hpp"
#include "support/small_networks.hpp"

namespace poise::markov_network_test {

using namespace poise::testing;

static_assert(SparseTarget<MarkovNetwork>);

std::vector<Network> many_networks() {
  std::vector<Network> networks;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    networks.push_back(mixed_network(0.0, seed));
    networks.push_back(mixed_network(0.2, seed));
    networks.push_back(mixed_network_with_evidence(0.0, seed));
    networks.push_back(mixed_network_with_evidence(0.1, seed));
  }
  networks.push_back(hub_network(0.0, 1));
  networks.push_back(hub_network(0.2, 2));
  return networks;
}

/// The state, with observed variables where they belong.
Levels clamped(const Network& network, Levels x) {
  for (Index i = 0; i < x.size(); ++i) {
    if (network.is_observed(i)) x[i] = static_cast<Value>(network.observed[i]);
  }
  return x;
}

TEST(MarkovNetwork, LogProbIsTheLogOfTheProductOfAllFactors) {
  for (const Network& network : many_networks()) {
    const MarkovNetwork target(network);
    for (const Levels& x : all_states(target)) {
      const double product = product_at(network, clamped(network, x));
      const double log_prob = target.log_prob(target.make_state(x));
      if (product == 0.0) {
        ASSERT_EQ(log_prob, -INFINITY);
      } else {
        ASSERT_NEAR(log_prob, std::log(product), 1e-12);
      }
    }
  }
}

TEST(MarkovNetwork, FactorsInsideOthersAreMultipliedIntoThem) {
  EXPECT_EQ(MarkovNetwork(mixed_network(0.0, 1)).num_factors(), 3U);  // {1,3,4}, {0,1}, {0,4}
}

TEST(MarkovNetwork, ConditioningGivesTheSameProductsAsTheWholeNetwork) {
  const Network whole = mixed_network(0.1, 4);
  const Network part = condition(whole, {{4, 3}, {2, 0}, {1, 1}});
  const MarkovNetwork target(part);
  for (const Levels& x : all_states(target)) {
    const Levels full = clamped(part, x);
    EXPECT_NEAR(product_at(part, full), product_at(whole, full), 1e-15);
    const auto state = target.make_state(x);
    for (Index i = 0; i < full.size(); ++i) EXPECT_EQ(target.level(state, i), full[i]);
  }
  EXPECT_EQ(target.num_moves(), 2U);
}

TEST(Conformance, Networks) {
  for (const Network& network : many_networks()) expect_conforms(MarkovNetwork(network), 200);
}

TEST(Drift, NoneOnNetworks) {
  expect_no_drift(MarkovNetwork(mixed_network(0.0, 1)));
  expect_no_drift(MarkovNetwork(hub_network(0.0, 1)));
}

// A table of the size of e^-600 to e^600 beside mild ones, and a chain that makes and breaks zeros all the time.
TEST(MarkovNetwork, SteepTablesKeepMildOnesExact) {
  Network network = mixed_network(0.0, 2);
  network.add_factor(std::vector<Index>{0}, std::vector<double>{1e-260, 1e260});
  const MarkovNetwork target(network);
  const auto state = target.make_state(Levels{1, 0, 0, 0, 0});
  const double mild = std::log(product_at(network, {1, 0, 0, 0, 3}) / product_at(network, {1, 0, 0, 0, 0}));
  EXPECT_NEAR(target.log_ratio(state, {4, 3}), mild, 1e-12);
  EXPECT_LT(target.unit(), 1e-13);
}

TEST(MarkovNetwork, AStateWithoutProbabilityKnowsTheWayOut) {
  Network network;
  network.cardinalities = {2, 2, 2};
  network.add_factor(std::vector<Index>{0, 1}, std::vector<double>{1.0, 0.0, 0.0, 2.0});
  network.add_factor(std::vector<Index>{1, 2}, std::vector<double>{0.0, 1.0, 3.0, 4.0});
  const MarkovNetwork target(network);
  auto state = target.make_state(Levels{1, 0, 0});  // both factors are zero
  EXPECT_EQ(target.log_prob(state), -INFINITY);
  EXPECT_EQ(target.log_ratio(state, {1, 1}), INFINITY);
  target.apply(state, {1, 1});
  EXPECT_NEAR(target.log_prob(state), std::log(6.0), 1e-14);
  EXPECT_NEAR(target.log_ratio(state, {2, 1}), std::log(4.0 / 3.0), 1e-14);
  EXPECT_EQ(target.log_ratio(state, {0, 0}), -INFINITY);
}

TEST(MarkovNetwork, RefusesWhatItCannotHold) {
  Network wide;
  wide.cardinalities = {129};
  EXPECT_THROW(MarkovNetwork{wide}, InputError);
  Network impossible;
  impossible.cardinalities = {2, 2};
  impossible.add_factor(std::vector<Index>{0, 1}, std::vector<double>{0.0, 1.0, 0.0, 1.0});
  impossible.add_factor(std::vector<Index>{1}, std::vector<double>{1.0, 0.0});
  EXPECT_THROW(MarkovNetwork{impossible}, InputError);
}

TEST(Exactness, LocallyBalancedOnNetworks) {
  for (const Network& network : many_networks()) {
    if (network.num_variables() == 5) expect_detailed_balance(MarkovNetwork(network));
  }
}
TEST(Exactness, LocallyBalancedOnAHub) {
  expect_detailed_balance(MarkovNetwork(condition(hub_network(0.1, 3), {{9, 1}, {8, 0}})));
}
TEST(Exactness, GibbsOnNetworks) {
  for (const Network& network : many_networks()) expect_invariant(MarkovNetwork(network));
}

TEST(PlainKernel, MakesTheSameChainOnNetworks) {
  for (const Network& network : many_networks()) {
    for (int function = 0; function < 4; ++function) {
      expect_same_chain(MarkovNetwork(network), BalancingFunction(static_cast<BalancingFunction::Kind>(function)), 500);
    }
  }
}

// Two states that no single change joins: the chain stays where it is, as it must, and nothing fails.
TEST(LocallyBalanced, AnIsolatedStateIsKept) {
  Network network;
  network.cardinalities = {2, 2};
  network.add_factor(std::vector<Index>{0, 1}, std::vector<double>{1.0, 0.0, 0.0, 1.0});
  const MarkovNetwork target(network);
  const LocallyBalanced<MarkovNetwork> kernel{BalancingFunction()};
  auto state = target.make_state(Levels{1, 1});
  LocallyBalanced<MarkovNetwork>::Scratch scratch(target);
  kernel.prepare(target, state, scratch);
  Rng rng(1, 1);
  for (int step = 0; step < 100; ++step) EXPECT_FALSE(kernel.step(target, state, scratch, rng).accepted);
  EXPECT_EQ(target.level(state, 0), 1);
}

}  // namespace poise::markov_network_test
