/// Branch and bound for the most probable state: against enumeration, and what it says when it is stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "exact/max_product.hpp"
#include "exact/reduced_network.hpp"
#include "inference/network_search/branch_and_bound.hpp"
#include "inference/network_search/soft_costs.hpp"
#include "support/ranked_states.hpp"

namespace poise::branch_and_bound_test {

using network_search::BranchAndBound;
using network_search::Cost;
using network_search::SoftCosts;
using testing::ListedState;

/// Networks of factors of one to four variables, with ties, zeros and evidence, without what zeros settle.
template <class Check>
void for_each_network(int trials, const Check& check) {
  Rng rng(101, 0);
  for (int trial = 0; trial < trials; ++trial) {
    SCOPED_TRACE(trial);
    const bool ties = trial % 2 == 0;
    const double zeros = trial % 3 == 0 ? 0.25 : 0.0;
    Network network =
        testing::tied_network({.factors = 4 + static_cast<Index>(trial % 9), .zeros = zeros, .ties = ties}, rng);
    for (int extra = trial % 4; extra > 0; --extra) {
      std::vector<Index> scope(network.num_variables());
      std::iota(scope.begin(), scope.end(), Index{0});
      for (Index k = 0; k < 4; ++k) {
        std::swap(scope[k], scope[k + static_cast<Index>(rng.uniform() * (network.num_variables() - k))]);
      }
      scope.resize(4);
      std::size_t size = 1;
      for (const Index i : scope) size *= network.cardinalities[i];
      std::vector<double> table(size);
      for (double& value : table) {
        value = ties ? std::exp2(std::floor(4.0 * rng.uniform())) : 0.1 + rng.uniform();
        if (rng.uniform() < zeros) value = 0.0;
      }
      network.add_factor(scope, table);
    }
    if (testing::listed_states(network).empty()) continue;
    const Network reduced = ReducedNetwork(network).network;
    if (reduced.num_variables() > 0) check(reduced, testing::listed_states(reduced));
  }
}

double value_of(const Network& network, const std::vector<Value>& x) {
  return log_value(network, std::vector<Index>(x.begin(), x.end()));
}

TEST(SoftCosts, BoundEveryStateThatCountsAndComeBack) {
  int out = 0;
  for_each_network(200, [&](const Network& network, const std::vector<ListedState>& truth) {
    SoftCosts costs(network);
    for (const ListedState& state : truth) {
      const Cost cost = costs.cost(std::vector<Value>(state.levels.begin(), state.levels.end()));
      EXPECT_NEAR(costs.log_of(cost), state.log_value, 1e-10);
    }
    const auto check = [&](Cost limit) {
      for (const ListedState& state : truth) {
        const std::vector<Value> x(state.levels.begin(), state.levels.end());
        if (costs.cost(x) >= limit) continue;
        EXPECT_LE(costs.bound(), costs.cost(x));
        for (Index i = 0; i < costs.size(); ++i) {
          EXPECT_TRUE(std::ranges::find(costs.levels(i), Index{x[i]}) != costs.levels(i).end());
        }
      }
    };
    const SoftCosts::Effort effort{.rounds = 3, .least_gain = 0.0, .least_move = 0.0};
    const Cost limit = costs.cost_of(truth[truth.size() / 3].log_value) + costs.rounding();
    ASSERT_TRUE(costs.propagate(limit, effort));
    check(limit);
    const Cost before = costs.bound();
    std::vector<std::size_t> left;
    for (Index i = 0; i < costs.size(); ++i) left.push_back(costs.levels(i).size());
    for (Index i = 0; i < costs.size(); ++i) {
      for (const Index level : std::vector<Index>(costs.levels(i).begin(), costs.levels(i).end())) {
        if (costs.is_settled(i)) break;
        costs.push();
        costs.settle(i, level);
        double best = kMinusInfinity;
        for (const ListedState& state : truth) {
          if (state.levels[i] == level) best = std::max(best, state.log_value);
        }
        if (costs.propagate(limit, effort)) {
          EXPECT_GE(costs.log_of(costs.bound() - costs.rounding()), best);
        } else {
          EXPECT_LE(best, costs.log_of(limit - costs.rounding()));
          ++out;
        }
        costs.pop();
        EXPECT_EQ(costs.bound(), before);
        for (Index j = 0; j < costs.size(); ++j) EXPECT_EQ(costs.levels(j).size(), left[j]);
      }
    }
    check(limit);
    ASSERT_TRUE(costs.propagate(limit, effort));
    check(limit);
  });
  EXPECT_GT(out, 10);
}

TEST(BranchAndBound, FindsTheBestStateOrProvesIt) {
  for_each_network(300, [](const Network& network, const std::vector<ListedState>& truth) {
    const double best = truth.front().log_value;
    for (const double known : {kMinusInfinity, truth[truth.size() / 2].log_value, best}) {
      BranchAndBound tree(network, 1e6);
      tree.look_above(known);
      ASSERT_TRUE(tree.search({}));
      EXPECT_GE(tree.log_bound(), known == best ? known - 1e-8 : best - 1e-8);
      EXPECT_LE(tree.log_bound(), best + 1e-8);
      if (known > best - 1e-9) {
        EXPECT_FALSE(tree.best());
      } else {
        ASSERT_TRUE(tree.best());
        EXPECT_NEAR(value_of(network, *tree.best()), best, 1e-9);
      }
    }
  });
}

TEST(BranchAndBound, IsNeverBelowTheOptimumWhereItIsStopped) {
  int stops = 0;
  for_each_network(200, [&](const Network& network, const std::vector<ListedState>& truth) {
    const double best = truth.front().log_value;
    BranchAndBound tree(network, 1e6);
    tree.look_above(truth.back().log_value);
    BranchAndBound whole(network, 1e6);
    whole.look_above(truth.back().log_value);
    (void)whole.search({});
    double bound = std::numeric_limits<double>::infinity();
    while (!tree.search({.looks = 1.0})) {
      ++stops;
      EXPECT_GE(tree.log_bound(), best - 1e-9);
      EXPECT_LE(tree.log_bound(), bound);
      bound = tree.log_bound();
    }
    ASSERT_EQ(tree.best().has_value(), whole.best().has_value());
    if (tree.best()) EXPECT_NEAR(value_of(network, *tree.best()), best, 1e-9);
  });
  EXPECT_GT(stops, 100);
}

TEST(BranchAndBound, HasNoStateWhereZerosLeaveNone) {
  Network network;
  network.cardinalities = {2, 2, 2};
  const std::vector<double> differ = {0.0, 1.0, 1.0, 0.0};
  for (const std::vector<Index>& scope : std::vector<std::vector<Index>>{{0, 1}, {1, 2}, {0, 2}}) {
    network.add_factor(scope, differ);
  }
  BranchAndBound tree(network, 1e6);
  EXPECT_TRUE(tree.search({}));
  EXPECT_FALSE(tree.best());
}

}  // namespace poise::branch_and_bound_test
