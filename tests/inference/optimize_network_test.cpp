/// The most probable state of networks: exact answers, search, bounds, crossing, and what must not change an answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "exact/collapse.hpp"
#include "exact/cost_shifting.hpp"
#include "exact/dominance.hpp"
#include "exact/level_symmetry.hpp"
#include "exact/max_product.hpp"
#include "exact/mini_buckets.hpp"
#include "exact/reduced_network.hpp"
#include "inference/network_search/proof.hpp"
#include "inference/network_search/search.hpp"
#include "inference/optimize_network.hpp"
#include "support/input.hpp"
#include "support/ranked_states.hpp"
#include "support/small_networks.hpp"

namespace poise::optimize_network_test {

using network_search::Choice;
using network_search::LogNetwork;
using network_search::Part;
using testing::ListedState;

/// Networks, some with ties and zeros, that have a state of positive probability.
template <class Check>
void for_each_network(int trials, const Check& check) {
  Rng rng(77, 0);
  for (int trial = 0; trial < trials; ++trial) {
    SCOPED_TRACE(trial);
    const Network network = testing::tied_network(
        {.factors = 3 + static_cast<Index>(trial % 10), .zeros = trial % 3 == 0 ? 0.3 : 0.0, .ties = trial % 2 == 0},
        rng);
    const std::vector<ListedState> truth = testing::listed_states(network);
    if (!truth.empty()) check(network, truth, rng);
  }
}

Network wide_network(Index levels, double zeros) {
  std::vector<std::vector<Index>> scopes;
  const Index side = 16;
  for (Index i = 0; i < side * side; ++i) {
    if (i % side + 1 < side) scopes.push_back({i, i + 1});
    if (i + side < side * side) scopes.push_back({i, i + side});
    if (i % 7 == 0 && i + side + 1 < side * side) scopes.push_back({i, i + 1, i + side + 1});
  }
  return testing::RandomNetwork{.cardinalities = std::vector<Index>(side * side, levels),
                                .scopes = scopes,
                                .zeros = zeros,
                                .alive = {std::vector<Index>(side * side, 1)}}
      .make();
}

OptimizeAnswer best_of(const Network& network, const OptimizeOptions& options, const OptimizeStart& start = {}) {
  Model model;
  model.name = "test";
  return find_best_of_network(model, network, options, start);
}

TEST(OptimizeNetwork, ExactAnswersAgreeWithEnumeration) {
  for_each_network(60, [](const Network& network, const std::vector<ListedState>& truth, Rng&) {
    const OptimizeAnswer answer = best_of(network, {.sweeps = 1, .solutions = 5});
    EXPECT_TRUE(answer.optimal);
    EXPECT_EQ(answer.bound, answer.best().objective);
    ASSERT_EQ(answer.solutions.size(), std::min<std::size_t>(5, truth.size()));
    for (std::size_t k = 0; k < answer.solutions.size(); ++k) {
      EXPECT_NEAR(answer.solutions[k].objective, truth[k].log_value, 1e-11);
      EXPECT_NEAR(std::log(testing::product_at(network, answer.solutions[k].state)), truth[k].log_value, 1e-9);
    }
  });
}

TEST(OptimizeNetwork, FixedVariablesKeepTheirLevel) {
  for_each_network(30, [](const Network& network, const std::vector<ListedState>& truth, Rng&) {
    const ListedState& worst = truth.back();
    OptimizeStart start;
    start.fixed.resize(network.num_variables());
    start.fixed[0] = static_cast<Value>(worst.levels[0]);
    start.fixed[2] = static_cast<Value>(worst.levels[2]);
    const auto best = std::find_if(truth.begin(), truth.end(), [&](const ListedState& state) {
      return state.levels[0] == worst.levels[0] && state.levels[2] == worst.levels[2];
    });
    const OptimizeAnswer answer = best_of(network, {.sweeps = 1}, start);
    EXPECT_NEAR(answer.best().objective, best->log_value, 1e-11);
    EXPECT_EQ(answer.best().state[0], worst.levels[0]);
  });
}

TEST(OptimizeNetwork, RefusesWhatCannotBe) {
  const Network network = testing::mixed_network(0.0, 1);
  OptimizeStart start;
  start.fixed.assign(network.num_variables(), {});
  start.fixed[1] = 9;
  EXPECT_EQ(testing::refusal([&] { (void)best_of(network, {.sweeps = 1}, start); }),
            "x[1] is fixed at level 9, expected one below 3");
  start.fixed.resize(2);
  EXPECT_THROW((void)best_of(network, {.sweeps = 1}, start), InputError);
  EXPECT_THROW((void)best_of(network, {.sweeps = 1}, {.states = {{0, 1}}, .fixed = {}}), InputError);
}

/// Three levels on a grid. The first two are alike where `field` is zero.
Network alike_network(Index rows, Index columns, double field) {
  Network network;
  network.cardinalities.assign(std::size_t{rows} * columns, 3);
  network.observed.assign(network.cardinalities.size(), Network::kFree);
  const std::vector<double> pair{2.0, 0.5, 0.7, 0.5, 2.0, 0.7, 0.7, 0.7, 1.9};
  for (Index i = 0; i < network.num_variables(); ++i) {
    if (i % columns + 1 < columns) network.add_factor(std::vector<Index>{i, i + 1}, pair);
    if (i + columns < network.num_variables()) network.add_factor(std::vector<Index>{i, i + columns}, pair);
  }
  network.add_factor(std::vector<Index>{0}, std::vector<double>{1.0, 1.0 + field, 1.0});
  return network;
}

std::vector<Index> with_first_two_in_order(std::vector<Index> levels) {
  const auto first = std::find_if(levels.begin(), levels.end(), [](Index level) { return level < 2; });
  if (first == levels.end() || *first == 0) return levels;
  for (Index& level : levels) level = level < 2 ? 1 - level : level;
  return levels;
}

TEST(LevelSymmetry, ListsStatesUpToAnExchangeOfLevels) {
  for (const double field : {0.0, 1e-3}) {
    const Network network = alike_network(2, 3, field);
    EXPECT_EQ(LevelSymmetry(network).copies(), field == 0.0 ? 2.0 : 1.0);
    std::vector<double> values;
    for (const ListedState& state : testing::listed_states(network)) {
      if (field != 0.0 || with_first_two_in_order(state.levels) == state.levels) values.push_back(state.log_value);
    }
    const OptimizeAnswer answer = best_of(network, {.sweeps = 1, .solutions = 50});
    ASSERT_EQ(answer.solutions.size(), 50U);
    for (std::size_t k = 0; k < 50; ++k) {
      EXPECT_NEAR(answer.solutions[k].objective, values[k], 1e-11);
      EXPECT_EQ(answer.solutions[k].count, 1U);
    }
  }
  // What is observed or fixed is told apart, and so are levels beside variables that have fewer.
  Network network = alike_network(2, 3, 0.0);
  network.observed[4] = 2;
  EXPECT_EQ(LevelSymmetry(network).copies(), 2.0);
  network.observed[4] = 1;
  EXPECT_EQ(LevelSymmetry(network).copies(), 1.0);
}

TEST(LevelSymmetry, HoldsForStatesThatASearchFinds) {
  const OptimizeAnswer answer =
      best_of(alike_network(18, 18, 0.0), {.seconds = 0.5, .solutions = 6, .memory_limit = 2e6, .threads = 1});
  EXPECT_FALSE(answer.reason.starts_with("exact"));
  std::set<std::vector<Index>> different;
  for (const Solution& solution : answer.solutions) {
    different.insert(with_first_two_in_order({solution.state.begin(), solution.state.end()}));
  }
  EXPECT_EQ(different.size(), answer.solutions.size());
}

TEST(ReducedNetwork, HasTheStatesOfPositiveProbability) {
  for_each_network(60, [](const Network& network, const std::vector<ListedState>& truth, Rng&) {
    const ReducedNetwork reduced(network);
    const std::vector<ListedState> left = testing::listed_states(reduced.network);
    ASSERT_EQ(left.size(), truth.size());
    for (std::size_t k = 0; k < left.size(); ++k) {
      EXPECT_NEAR(left[k].log_value + reduced.log_constant, truth[k].log_value, 1e-11);
      const std::vector<Index> state = reduced.original_state(left[k].levels);
      EXPECT_NEAR(log_value(network, state), left[k].log_value + reduced.log_constant, 1e-11);
      EXPECT_EQ(reduced.reduced_state(state), left[k].levels);
    }
  });
}

TEST(CollapseByMaximum, KeepsTheLargestProduct) {
  for_each_network(60, [](const Network& network, const std::vector<ListedState>& truth, Rng& rng) {
    for (const double most : {1.0, 16.0, 4096.0}) {
      const Collapse collapse(network, {.most_entries = most, .trials = 4, .reduction = Reduction::max});
      const std::vector<ListedState> core = testing::listed_states(collapse.core());
      ASSERT_FALSE(core.empty());
      EXPECT_NEAR(core[0].log_value + collapse.log_constant(), truth[0].log_value, 1e-11);
      const std::vector<Value> x(core[0].levels.begin(), core[0].levels.end());
      std::vector<Value> state(network.num_variables());
      collapse.draw(x, rng, state, {});
      EXPECT_NEAR(log_value(network, std::vector<Index>(state.begin(), state.end())), truth[0].log_value, 1e-11);
    }
  });
}

TEST(MiniBuckets, AreNeverBelowTheOptimum) {
  int cut = 0;
  for_each_network(120, [&](const Network& network, const std::vector<ListedState>& truth, Rng&) {
    double previous = std::numeric_limits<double>::infinity();
    for (const double largest : {1.0, 8.0, 64.0, 1e6}) {
      const MiniBucketBound found = mini_bucket_bound(network, {.largest_table = largest});
      EXPECT_GE(found.log_bound, truth[0].log_value - 1e-11);
      if (found.exact) EXPECT_NEAR(found.log_bound, truth[0].log_value, 1e-11);
      cut += found.exact ? 0 : 1;
      previous = found.log_bound;
    }
    EXPECT_NEAR(previous, truth[0].log_value, 1e-11);
  });
  EXPECT_GT(cut, 20);
}

TEST(ShiftedCosts, BoundEveryStateAndKeepTheGoodOnes) {
  int out = 0;
  for_each_network(120, [&](const Network& original, const std::vector<ListedState>&, Rng&) {
    const Network network = ReducedNetwork(original).network;
    if (network.num_variables() == 0) return;
    const std::vector<ListedState> truth = testing::listed_states(network);
    const ShiftedCosts costs(network, {.operations = 1e5});
    EXPECT_GE(costs.log_bound(), truth[0].log_value - 1e-9);
    const std::vector<ListedState> shifted = testing::listed_states(costs.shifted());
    ASSERT_EQ(shifted.size(), truth.size());
    for (std::size_t k = 0; k < truth.size(); ++k) {
      EXPECT_NEAR(shifted[k].log_value + costs.log_bound(), truth[k].log_value, 1e-9);
    }
    const ListedState& known = truth[truth.size() / 4];
    const std::vector<bool> ruled_out = costs.ruled_out(known.log_value);
    for (const ListedState& state : truth) {
      if (state.log_value < known.log_value) break;
      std::size_t start = 0;
      for (Index i = 0; i < network.num_variables(); start += network.cardinalities[i++]) {
        EXPECT_FALSE(ruled_out[start + state.levels[i]]);
      }
    }
    out += static_cast<int>(std::count(ruled_out.begin(), ruled_out.end(), true));
  });
  EXPECT_GT(out, 20);
}

TEST(Dominance, KeepsABestState) {
  double before = 0.0;
  double after = 0.0;
  for_each_network(120, [&](const Network& original, const std::vector<ListedState>&, Rng&) {
    const Network network = ReducedNetwork(original).network;
    if (network.num_variables() == 0) return;
    const std::vector<ListedState> truth = testing::listed_states(network);
    const std::vector<ListedState> left = testing::listed_states(without_dominated_levels(network));
    ASSERT_FALSE(left.empty());
    EXPECT_NEAR(left[0].log_value, truth[0].log_value, 1e-11);
    before += static_cast<double>(truth.size());
    after += static_cast<double>(left.size());
  });
  EXPECT_LT(after, 0.5 * before);
}

TEST(Proof, BoundsAndProvesOrFindsBetter) {
  int proved = 0;
  for_each_network(60, [&](const Network& original, const std::vector<ListedState>&, Rng&) {
    const Network network = ReducedNetwork(original).network;
    if (network.num_variables() == 0) return;
    const std::vector<ListedState> truth = testing::listed_states(network);
    for (const ListedState& known : {truth.front(), truth[truth.size() / 2]}) {
      // Without time for the exact part, and with it.
      for (const double seconds : {0.0, 1e9}) {
        network_search::Proof proof(network, {.operations = 1e5, .seconds = seconds, .threads = 1});
        EXPECT_GE(proof.bound(), truth[0].log_value - 1e-9);
        const network_search::Proof::Outcome outcome = proof.attempt(known.log_value);
        EXPECT_GE(proof.bound(), truth[0].log_value - 1e-8);
        if (!outcome.proved) continue;
        ++proved;
        const std::vector<Index> better(outcome.better.begin(), outcome.better.end());
        const double value = better.empty() ? known.log_value : log_value(network, better);
        EXPECT_NEAR(value, truth[0].log_value, 1e-8);
      }
    }
  });
  EXPECT_GT(proved, 60);
}

TEST(Part, IsTheBestOfItsChoices) {
  int moved = 0;
  for_each_network(60, [&](const Network& original, const std::vector<ListedState>&, Rng& rng) {
    const Network network = ReducedNetwork(original).network;
    if (network.num_variables() == 0) return;
    const LogNetwork logs(network);
    Part part(logs);
    for (int trial = 0; trial < 5; ++trial) {
      std::vector<Value> x(logs.size());
      std::vector<Choice> choices;
      for (Index i = 0; i < logs.size(); ++i) {
        x[i] = static_cast<Value>(rng.uniform() * logs.levels(i));
        const double kind = rng.uniform();
        const auto other = static_cast<std::ptrdiff_t>(rng.uniform() * logs.levels(i));
        if (kind < 0.4) choices.push_back({i, logs.levels(i)});
        if (kind > 0.6 && other != x[i]) choices.push_back({i, 2, x[i], other - x[i]});
      }
      double best = -std::numeric_limits<double>::infinity();
      std::vector<Value> tried = x;
      const auto try_all = [&](const auto& self, std::size_t k) -> void {
        if (k == choices.size()) {
          best = std::max(best, logs.value(tried));
          return;
        }
        for (Index level = 0; level < choices[k].levels; ++level) {
          tried[choices[k].variable] = static_cast<Value>(choices[k].first + choices[k].step * level);
          self(self, k + 1);
        }
      };
      try_all(try_all, 0);
      const double before = logs.value(x);
      std::vector<Value> cut = x;
      part.maximise(choices, {.largest = 4.0}, cut, rng);
      EXPECT_GE(logs.value(cut), before - 1e-9);
      part.maximise(choices, {}, x, rng);
      EXPECT_NEAR(logs.value(x), best, 1e-9);
      moved += best > before ? 1 : 0;
    }
  });
  EXPECT_GT(moved, 100);
}

TEST(Crossing, TakesTheBestOfBothInEveryComponent) {
  const Network network = wide_network(3, 0.0);
  const LogNetwork logs(network);
  Part part(logs);
  Rng rng(4, 0);
  network_search::Scored a{std::vector<Value>(logs.size()), 0.0};
  for (Value& level : a.x) level = static_cast<Value>(rng.uniform() * 3);
  network_search::Scored b = a;
  for (Index i = 0; i < logs.size(); ++i) {
    if (rng.uniform() < 0.2) b.x[i] = static_cast<Value>(rng.uniform() * 3);
  }
  a.value = logs.value(a.x);
  b.value = logs.value(b.x);
  const network_search::Scored child = network_search::cross(logs, part, a, b, {.largest = 65536.0}, rng);
  EXPECT_NEAR(child.value, logs.value(child.x), 1e-9);
  // Components of what the parents differ in: the gain of each by itself, from scratch.
  std::vector<bool> seen(logs.size(), false);
  double best = a.value;
  for (Index first = 0; first < logs.size(); ++first) {
    if (seen[first] || a.x[first] == b.x[first]) continue;
    std::vector<Index> component{first};
    seen[first] = true;
    std::vector<Value> x = a.x;
    for (std::size_t k = 0; k < component.size(); ++k) {
      x[component[k]] = b.x[component[k]];
      for (const Index u : logs.graph().of(component[k])) {
        if (seen[u] || a.x[u] == b.x[u]) continue;
        seen[u] = true;
        component.push_back(u);
      }
    }
    best += std::max(0.0, logs.value(x) - a.value);
  }
  EXPECT_GT(best, std::max(a.value, b.value) + 1.0);
  EXPECT_GE(child.value, best - 1e-9);
}

TEST(NetworkSearch, FindsTheOptimumOfSmallNetworks) {
  for_each_network(30, [](const Network& original, const std::vector<ListedState>& truth, Rng&) {
    const ReducedNetwork reduced(original);
    if (reduced.network.num_variables() == 0) return;
    const LogNetwork logs(reduced.network);
    const auto found = network_search::search(logs, {}, {.sweeps = 500.0, .solutions = 3, .threads = 1});
    EXPECT_NEAR(found.front().state.value + reduced.log_constant, truth[0].log_value, 1e-9);
  });
}

TEST(NetworkSearch, WideNetworksByTheSeedAlone) {
  for (const double zeros : {0.0, 0.2}) {
    const Network network = wide_network(4, zeros);
    std::vector<OptimizeAnswer> answers;
    for (const unsigned threads : {1U, 3U}) {
      answers.push_back(best_of(network, {.sweeps = 100, .solutions = 3, .memory_limit = 2e6, .threads = threads}));
    }
    EXPECT_FALSE(answers[0].optimal);
    ASSERT_TRUE(answers[0].bound);
    EXPECT_GE(*answers[0].bound, answers[0].best().objective);
    ASSERT_EQ(answers[0].solutions.size(), answers[1].solutions.size());
    for (std::size_t k = 0; k < answers[0].solutions.size(); ++k) {
      EXPECT_EQ(answers[0].solutions[k].state, answers[1].solutions[k].state);
      EXPECT_EQ(answers[0].solutions[k].objective, answers[1].solutions[k].objective);
      if (k > 0) EXPECT_NE(answers[0].solutions[k].state, answers[0].solutions[k - 1].state);
    }
    EXPECT_TRUE(std::isfinite(answers[0].best().objective));
    // A given state is never lost.
    const OptimizeAnswer again = best_of(network, {.sweeps = 10, .memory_limit = 2e6, .threads = 1},
                                         {.states = {answers[0].best().state}, .fixed = {}});
    EXPECT_GE(again.best().objective, answers[0].best().objective - 1e-9);
  }
}

TEST(NetworkSearch, ContinuesWithTheBestStateFound) {
  const Network network = wide_network(4, 0.1);
  Model model;
  model.name = "test";
  const OptimizeOptions options{.sweeps = 60, .memory_limit = 2e6, .threads = 1};
  std::string saved;
  OptimizeHooks hooks;
  hooks.after_round = [&](const std::function<std::string()>& save) { saved = save(); };
  const OptimizeAnswer first = find_best_of_network(model, network, options, {}, hooks);
  ASSERT_FALSE(saved.empty());
  OptimizeOptions longer = options;
  longer.sweeps = 80;
  OptimizeStart start;
  start.resumed = saved;
  const OptimizeAnswer second = find_best_of_network(model, network, longer, start);
  EXPECT_GE(second.best().objective, first.best().objective - 1e-9);
  EXPECT_GE(second.seconds, first.history.front().seconds);
  EXPECT_EQ(second.history.front().objective, first.history.front().objective);
  EXPECT_GE(second.history.back().sweeps, first.history.front().sweeps);
  const Network other = testing::mixed_network(0.0, 1);
  EXPECT_THROW((void)find_best_of_network(model, other, options, start), InputError);
}

TEST(NetworkSearch, StopsWhenTold) {
  const Network network = wide_network(4, 0.0);
  Model model;
  const std::atomic<bool> stop = true;
  const OptimizeAnswer answer = find_best_of_network(model, network, {.sweeps = 1000000, .memory_limit = 2e6}, {},
                                                     {.progress = nullptr, .stop = &stop});
  EXPECT_TRUE(answer.interrupted);
  EXPECT_TRUE(std::isfinite(answer.best().objective));
}

}  // namespace poise::optimize_network_test
