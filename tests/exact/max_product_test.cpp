/// Max-product against enumeration: the best states in order, with ties, zeros, evidence, slices and threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "exact/max_product.hpp"
#include "support/ranked_states.hpp"

namespace poise::max_product_test {

using testing::ListedState;
using testing::TiedNetwork;

ExactPlan conditioned_plan(const Network& network, std::vector<Index> conditioned) {
  ExactPlan plan;
  Network slice = network;
  for (const Index i : conditioned) {
    plan.slices *= network.levels(i);
    slice.observed[i] = 0;
  }
  plan.tree = plan_elimination(slice);
  plan.conditioned = std::move(conditioned);
  return plan;
}

/// Values in the order of the truth, states different from each other and of the value that is told.
void expect_best(const std::vector<RankedState>& found, const std::vector<ListedState>& truth, std::size_t count) {
  ASSERT_EQ(found.size(), std::min(count, truth.size()));
  std::set<std::vector<Index>> different;
  for (std::size_t k = 0; k < found.size(); ++k) {
    ASSERT_NEAR(found[k].log_value, truth[k].log_value, 1e-11) << k;
    const auto same = std::find_if(truth.begin(), truth.end(),
                                   [&](const ListedState& state) { return state.levels == found[k].levels; });
    ASSERT_NE(same, truth.end());
    ASSERT_NEAR(same->log_value, found[k].log_value, 1e-11);
    different.insert(found[k].levels);
  }
  EXPECT_EQ(different.size(), found.size());
}

TEST(MaxProduct, AgreesWithEnumeration) {
  Rng rng(31, 0);
  int impossible = 0;
  for (int trial = 0; trial < 300; ++trial) {
    SCOPED_TRACE(trial);
    const Network network = testing::tied_network(
        {.factors = 2 + static_cast<Index>(trial % 11), .zeros = trial % 3 == 0 ? 0.35 : 0.0, .ties = trial % 2 == 0},
        rng);
    std::vector<Index> conditioned;
    for (Index i = 0; trial % 4 == 3 && i + 1 < network.num_variables() && conditioned.size() < 3; ++i) {
      if (network.levels(i) > 1 && rng.uniform() < 0.6) conditioned.push_back(i);
    }
    const ExactPlan plan = conditioned_plan(network, conditioned);
    const std::vector<ListedState> truth = testing::listed_states(network);
    if (truth.empty()) {
      EXPECT_THROW((void)most_probable_states(network, plan, 3), InputError);
      ++impossible;
      continue;
    }
    for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{17}, std::size_t{100000}}) {
      expect_best(most_probable_states(network, plan, count), truth, count);
    }
  }
  EXPECT_GT(impossible, 5);
}

TEST(MaxProduct, ThreadsChangeNothing) {
  Network network;
  network.cardinalities.assign(14 * 14, 2);
  Rng rng(5, 0);
  for (Index i = 0; i < network.num_variables(); ++i) {
    const auto join = [&](Index j) {
      const std::vector<double> table{1.0, 0.2 + rng.uniform(), 0.2 + rng.uniform(), 1.0};
      network.add_factor(std::vector<Index>{i, j}, table);
    };
    if (i % 14 != 13) join(i + 1);
    if (i + 14 < network.num_variables()) join(i + 14);
  }
  network.observed.assign(network.num_variables(), Network::kFree);
  std::vector<RankedState> first;
  for (const bool sliced : {false, true}) {
    const ExactPlan plan = conditioned_plan(network, sliced ? std::vector<Index>{40, 100} : std::vector<Index>{});
    for (const unsigned threads : {1U, 2U, 3U}) {
      const std::vector<RankedState> found = most_probable_states(network, plan, 12, {.threads = threads});
      if (first.empty()) first = found;
      ASSERT_EQ(found.size(), first.size());
      for (std::size_t k = 0; k < found.size(); ++k) {
        EXPECT_EQ(found[k].levels, first[k].levels);
        EXPECT_EQ(found[k].log_value, first[k].log_value);
      }
    }
  }
}

TEST(MaxProduct, StopsAndRefuses) {
  Rng rng(9, 0);
  Network network = testing::tied_network({.factors = 9}, rng);
  const ExactPlan plan = conditioned_plan(network, {});
  EXPECT_THROW((void)most_probable_states(network, plan, 1, {.progress = [](double) { return false; }}), ExactStopped);
  EXPECT_THROW((void)most_probable_states(network, plan, 1, {.memory_limit = 10.0}), InputError);
}

}  // namespace poise::max_product_test
