/// Summing variables out: the constant, the law of core and way back together, and the averages of conditionals,
/// against enumeration.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "exact/collapse.hpp"
#include "exact/junction_tree.hpp"
#include "models/network/markov_network.hpp"

#include "support/small_networks.hpp"

namespace poise::collapse_test {

using testing::hub_network;
using testing::mixed_network;
using testing::mixed_network_with_evidence;
using testing::RandomNetwork;

Index random_below(Rng& rng, std::size_t n) { return static_cast<Index>(rng.uniform() * static_cast<double>(n)); }

/// The sum of the log factors: the product itself may be out of the range of doubles.
double log_product_at(const Network& network, const std::vector<Value>& x) {
  double sum = 0.0;
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    std::size_t place = 0;
    for (const Index i : network.scope(f)) place = place * network.cardinalities[i] + x[i];
    sum += std::log(network.table(f)[place]);
  }
  return sum;
}

/// All states, observed variables at their level.
std::vector<std::vector<Value>> states_of(const Network& network) {
  std::vector<Value> x(network.num_variables(), 0);
  for (Index i = 0; i < x.size(); ++i) {
    if (network.is_observed(i)) x[i] = static_cast<Value>(network.observed[i]);
  }
  std::vector<std::vector<Value>> states;
  for (bool more = true; more;) {
    states.push_back(x);
    more = false;
    for (Index i = 0; i < x.size() && !more; ++i) {
      if (network.is_observed(i)) continue;
      more = ++x[i] < network.cardinalities[i];
      if (!more) x[i] = 0;
    }
  }
  return states;
}

double log_sum(const std::vector<double>& logs) {
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0.0;
  for (const double value : logs) sum += std::exp(value - largest);
  return largest + std::log(sum);
}

std::vector<double> log_products(const Network& network, const std::vector<std::vector<Value>>& states) {
  std::vector<double> logs;
  logs.reserve(states.size());
  for (const std::vector<Value>& x : states) logs.push_back(log_product_at(network, x));
  return logs;
}

/// What the header promises of the core, whatever the network.
void expect_well_formed(const Collapse& collapse, const Network& network) {
  const Network& core = collapse.core();
  ASSERT_EQ(core.num_variables(), collapse.kept().size());
  EXPECT_TRUE(core.observed.empty());
  std::vector<int> factors(core.num_variables(), 0);
  for (std::size_t f = 0; f < core.num_factors(); ++f) {
    EXPECT_FALSE(core.scope(f).empty());
    for (const Index i : core.scope(f)) ++factors[i];
    const auto [least, most] = std::minmax_element(core.table(f).begin(), core.table(f).end());
    EXPECT_EQ(*most, 1.0);
    EXPECT_LT(*least, 1.0);
  }
  Index free = 0;
  for (Index i = 0; i < network.num_variables(); ++i) free += network.levels(i) > 1 ? 1 : 0;
  EXPECT_EQ(collapse.num_removed() + core.num_variables(), free);
  for (Index k = 0; k < core.num_variables(); ++k) {
    EXPECT_GT(factors[k], 0);
    EXPECT_EQ(core.cardinalities[k], network.levels(collapse.kept()[k]));
    EXPECT_EQ(core.variable_name(k), network.variable_name(collapse.kept()[k]));
  }
}

/// log Z, p(core) P(rest | core) = p(x) at every state, and the support to the last state. The tolerance is relative to
/// the size of the logarithms, of which a few dozen are added.
void expect_same_law(const Network& network, const CollapseOptions& options, double tolerance = 1e-12) {
  const Collapse collapse(network, options);
  expect_well_formed(collapse, network);
  const std::vector<std::vector<Value>> states = states_of(network);
  const std::vector<double> logs = log_products(network, states);
  const double log_z = log_sum(logs);
  const double log_z_core = log_sum(log_products(collapse.core(), states_of(collapse.core())));
  EXPECT_NEAR(collapse.log_constant() + log_z_core, log_z, tolerance * (1.0 + std::abs(log_z)));
  std::vector<Value> core(collapse.kept().size());
  for (std::size_t s = 0; s < states.size(); ++s) {
    for (std::size_t k = 0; k < core.size(); ++k) core[k] = states[s][collapse.kept()[k]];
    const double log_core = log_product_at(collapse.core(), core);
    const double p = std::exp(logs[s] - log_z);
    if (log_core == -INFINITY) {
      ASSERT_EQ(logs[s], -INFINITY);
      continue;
    }
    const double log_rest = collapse.log_conditional(states[s]);
    ASSERT_NEAR(std::exp(log_core - log_z_core + log_rest), p, tolerance) << s;
    if (logs[s] == -INFINITY) {
      ASSERT_EQ(log_rest, -INFINITY) << s;
    }
  }
}

/// What `draw` adds to its sums follows from what it draws, so its expectation is a sum over states; those never drawn
/// can change it by no more than their probability. On the way the draws are counted: chi-square, over states of which
/// ten or more are expected and all others together.
void expect_draws(const Network& network, const CollapseOptions& options) {
  const Collapse collapse(network, options);
  const MarkovNetwork target(condition(network, {}));  // takes evidence that factors know of
  const std::vector<std::vector<Value>> states = states_of(network);
  const std::vector<double> logs = log_products(network, states);
  const double log_z = log_sum(logs);
  std::map<std::vector<Value>, std::vector<std::size_t>> by_core;  // states of the network
  std::vector<double> truth(target.num_moves(), 0.0);
  for (std::size_t s = 0; s < states.size(); ++s) {
    if (logs[s] == -INFINITY) continue;
    std::vector<Value> core;
    for (const Index i : collapse.kept()) core.push_back(states[s][i]);
    by_core[core].push_back(s);
    for (Index i = 0; i < states[s].size(); ++i) {
      if (network.levels(i) < 2 || states[s][i] == 0) continue;
      truth[target.first_move(i) + states[s][i] - 1] += std::exp(logs[s] - log_z);
    }
  }
  std::vector<double> mean(truth.size(), 0.0);
  double covered = 0.0;
  double chi_square = 0.0;
  double cells = 0.0;
  Rng rng(11, 0);
  std::vector<Value> x(network.num_variables());
  for (const auto& [core, members] : by_core) {
    struct Seen {
      int count = 0;
      std::vector<double> sums;
    };
    std::map<std::vector<Value>, Seen> seen;
    const int draws = 100 * static_cast<int>(members.size());
    for (int k = 0; k < draws; ++k) {
      std::vector<double> sums(truth.size(), 0.0);
      collapse.draw(core, rng, x, sums);
      Seen& at = seen[x];
      ++at.count;
      at.sums = std::move(sums);
    }
    double rest_expected = 0.0;
    double rest_count = draws;
    for (const std::size_t s : members) {
      const auto at = seen.find(states[s]);
      const int count = at == seen.end() ? 0 : at->second.count;
      const double expected = draws * std::exp(collapse.log_conditional(states[s]));
      if (expected < 10.0) {
        rest_expected += expected;
      } else {
        rest_count -= count;
        chi_square += (count - expected) * (count - expected) / expected;
        cells += 1.0;
      }
      if (count == 0) continue;
      const double p = std::exp(logs[s] - log_z);
      covered += p;
      for (std::size_t e = 0; e < mean.size(); ++e) mean[e] += p * at->second.sums[e];
      seen.erase(at);
    }
    EXPECT_TRUE(seen.empty()) << "a state of probability zero was drawn";
    if (rest_expected > 10.0) {
      chi_square += (rest_count - rest_expected) * (rest_count - rest_expected) / rest_expected;
      cells += 1.0;
    }
    cells -= 1.0;
  }
  EXPECT_LT((chi_square - cells) / std::sqrt(2.0 * cells + 1.0), 6.0);
  EXPECT_GT(covered, 0.9);
  for (const Index i : collapse.kept()) {
    for (Index k = 0; k + 1 < network.levels(i); ++k) {
      EXPECT_EQ(mean[target.first_move(i) + k], 0.0);
      mean[target.first_move(i) + k] = truth[target.first_move(i) + k];
    }
  }
  for (std::size_t e = 0; e < mean.size(); ++e) EXPECT_NEAR(mean[e], truth[e], 1.0 - covered + 1e-12) << e;
}

void expect_exact(const Network& network) {
  for (const double most_entries : {1.0, 4.0, 8.0, 16.0, 64.0, 4096.0}) {
    SCOPED_TRACE(most_entries);
    expect_same_law(network, {.most_entries = most_entries});
    expect_draws(network, {.most_entries = most_entries});
  }
}

RandomNetwork chain_of_pairs(Index variables, Index levels) {
  RandomNetwork recipe;
  recipe.cardinalities.assign(variables, levels);
  for (Index i = 1; i < variables; ++i) recipe.scopes.push_back({i - 1, i});
  return recipe;
}

RandomNetwork lattice(Index rows, Index columns, Index levels) {
  RandomNetwork recipe;
  recipe.cardinalities.assign(std::size_t{rows} * columns, levels);
  for (Index i = 0; i < rows * columns; ++i) {
    if (i % columns + 1 < columns) recipe.scopes.push_back({i, i + 1});
    if (i + columns < rows * columns) recipe.scopes.push_back({i, i + columns});
  }
  return recipe;
}

RandomNetwork complete(Index variables, Index levels) {
  RandomNetwork recipe;
  recipe.cardinalities.assign(variables, levels);
  for (Index i = 0; i < variables; ++i) {
    for (Index j = 0; j < i; ++j) recipe.scopes.push_back({i, j});
  }
  return recipe;
}

TEST(Collapse, MixedNetworks) {
  for (const double zeros : {0.0, 0.3}) {
    expect_exact(mixed_network(zeros, 4));
    expect_exact(mixed_network_with_evidence(zeros, 5));
    expect_exact(hub_network(zeros, 6));
  }
}

TEST(Collapse, ChainsTreesLatticesAndCompleteGraphs) {
  expect_exact(chain_of_pairs(6, 3).make());
  expect_exact(lattice(3, 3, 2).make());
  expect_exact(lattice(2, 3, 3).make());
  expect_exact(complete(7, 2).make());
  expect_exact(complete(4, 4).make());
  RandomNetwork tree;
  tree.cardinalities = {2, 3, 2, 4, 2, 3};
  tree.scopes = {{0, 1}, {0, 2}, {3, 1}, {1, 4}, {5, 2}};
  expect_exact(tree.make());
}

TEST(Collapse, WhatVanishesAltogetherIsExact) {
  const Collapse chain(chain_of_pairs(2000, 3).make());
  EXPECT_EQ(chain.core().num_variables(), 0);
  EXPECT_EQ(chain.core().num_factors(), 0);
  EXPECT_EQ(chain.num_removed(), 2000);
  const Network network = lattice(6, 60, 2).make();
  const Collapse strip(network);
  EXPECT_EQ(strip.core().num_variables(), 0);
  const JunctionTree tree(network, plan_elimination(network));
  EXPECT_NEAR(strip.log_constant(), tree.log_partition(), 1e-9);
}

TEST(Collapse, CompleteGraphsBeyondTheLimitStay) {
  const Collapse collapse(complete(14, 2).make(), {.most_entries = 4096});
  EXPECT_EQ(collapse.core().num_variables(), 14);
  EXPECT_EQ(collapse.num_removed(), 0);
  // One more entry is enough for the first to go, and the others need less.
  EXPECT_EQ(Collapse(complete(14, 2).make(), {.most_entries = 16384}).core().num_variables(), 0);
}

TEST(Collapse, WithoutFactorsOrWithoutFreeVariables) {
  Network network;
  EXPECT_EQ(Collapse(network).num_removed(), 0);
  network.cardinalities = {2, 1, 3};
  expect_exact(network);
  EXPECT_NEAR(Collapse(network).log_constant(), std::log(6.0), 1e-15);
  network.add_factor({}, std::vector{5.0});
  network.add_factor(std::vector<Index>{1}, std::vector{0.5});
  network.add_factor(std::vector<Index>{0, 2}, std::vector(6, 3.0));
  expect_exact(network);
  EXPECT_NEAR(Collapse(network).log_constant(), std::log(6.0 * 7.5), 1e-14);
  const Network observed = condition(network, {{0, 1}, {2, 2}});
  const Collapse collapse(observed);
  EXPECT_EQ(collapse.num_removed(), 0);
  EXPECT_NEAR(collapse.log_constant(), std::log(7.5), 1e-15);
  std::vector<Value> x(3, 9);
  Rng rng(1, 0);
  collapse.draw({}, rng, x, {});
  EXPECT_EQ(x, (std::vector<Value>{1, 0, 2}));
}

/// Observed, but the factors still hold the variable.
TEST(Collapse, EvidenceThatTablesDoNotKnowOf) {
  Network network = mixed_network(0.0, 8);
  network.observed.assign(network.num_variables(), Network::kFree);
  network.observed[1] = 2;
  const Network conditioned = condition(network, {});
  for (const double most_entries : {1.0, 4096.0}) {
    const Collapse a(network, {.most_entries = most_entries});
    const Collapse b(conditioned, {.most_entries = most_entries});
    EXPECT_EQ(a.log_constant(), b.log_constant());
    EXPECT_EQ(a.core().values, b.core().values);
  }
}

/// Factors of 1e-300 to 1e300, several in each table: products within a table reach 1e2400.
TEST(Collapse, AnyRange) {
  Rng rng(7, 0);
  for (int trial = 0; trial < 20; ++trial) {
    SCOPED_TRACE(trial);
    RandomNetwork recipe = complete(5, 2);
    recipe.seed = 100U + static_cast<unsigned>(trial);
    for (int k = 0; k < 3; ++k) {
      for (Index i = 1; i < 5; ++i) recipe.scopes.push_back({i - 1, i});
    }
    Network network = recipe.make();
    for (double& value : network.values) value *= std::pow(10.0, std::round(600.0 * rng.uniform() - 300.0));
    for (const double most_entries : {1.0, 8.0, 16.0, 4096.0}) {
      // Logarithms up to 20000 are rounded to 4e-12, some twenty times.
      expect_same_law(network, {.most_entries = most_entries}, 1e-10);
    }
  }
}

/// No entry that is not zero becomes one: the core is positive where the network is, though it spans 1e-900.
TEST(Collapse, TablesOfTheCoreBeyondDoubles) {
  Network network = complete(4, 2).make();
  for (int k = 0; k < 3; ++k) {
    network.add_factor(std::vector<Index>{0, 1}, std::vector{1.0, 1.0, 1e-300, 1.0});
    network.add_factor(std::vector<Index>{2, 3}, std::vector{1.0, 0.0, 1e-300, 1.0});
  }
  const Collapse collapse(network, {.most_entries = 4});
  ASSERT_EQ(collapse.core().num_variables(), 4);
  for (const std::vector<Value>& x : states_of(network)) {
    const double expected = log_product_at(network, x);
    const double found = log_product_at(collapse.core(), x) + collapse.log_constant();
    if (expected == -INFINITY) {
      EXPECT_EQ(found, -INFINITY);
    } else {
      EXPECT_NEAR(found, expected, 1e-11);
    }
  }
}

TEST(Collapse, ImpossibleNetworksAreRefused) {
  const auto message_of = [](const Network& network) {
    try {
      const Collapse collapse(network);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  Network network;
  network.cardinalities = {2, 2, 2};
  network.add_factor(std::vector<Index>{0, 1}, std::vector{0.0, 0.0, 0.0, 0.0});
  EXPECT_EQ(message_of(network),
            "no state has positive probability: factor 0 (x[0], x[1]) is zero wherever the other factors "
            "are not");
  network = Network();
  // Each pair alike, or each pair different: around a triangle both at once cannot be.
  network.cardinalities = {2, 2, 2};
  const std::vector different = {0.0, 1.0, 1.0, 0.0};
  network.add_factor(std::vector<Index>{0, 1}, different);
  network.add_factor(std::vector<Index>{1, 2}, different);
  network.add_factor(std::vector<Index>{0, 2}, different);
  EXPECT_TRUE(message_of(network).starts_with("no state has positive probability: the factors of x["))
      << message_of(network);
  network = Network();
  network.cardinalities = {129};
  EXPECT_EQ(message_of(network), "x[0] has 129 levels, but sampling takes at most 128");
}

/// Parents of what nobody observed are not joined: the sum of its conditional probabilities is 1.
TEST(Collapse, BarrenVariablesLeaveNothing) {
  Network network;
  network.cardinalities.assign(40, 2);
  Rng rng(3, 0);
  std::vector<Index> scope(13);
  for (Index i = 0; i < 12; ++i) network.add_factor(std::vector{i}, std::vector{0.25, 0.75});
  for (Index i = 12; i < 40; ++i) {
    for (Index k = 0; k < 12; ++k) scope[k] = i - 12 + k;
    scope[12] = i;
    std::vector<double> table(8192);
    for (std::size_t k = 0; k < table.size(); k += 2) {
      table[k] = rng.uniform();
      table[k + 1] = 1.0 - table[k];
    }
    network.add_factor(scope, table);
  }
  const Collapse collapse(network, {.most_entries = 64});
  EXPECT_EQ(collapse.core().num_variables(), 0);
  EXPECT_NEAR(collapse.log_constant(), 0.0, 1e-12);
}

TEST(Collapse, MemoryIsLimited) {
  const Network network = lattice(30, 30, 2).make();
  const Collapse all(network);
  EXPECT_LT(all.core().num_variables(), 300);
  const Collapse limited(network, {.memory_limit = all.bytes() / 4.0});
  EXPECT_LE(limited.bytes(), all.bytes() / 4.0);
  EXPECT_GT(limited.core().num_variables(), all.core().num_variables());
  EXPECT_LT(limited.core().num_variables(), 900);
}

TEST(Collapse, TheSameNetworkGivesTheSameCore) {
  const Network network = lattice(12, 12, 2).make();
  const Collapse a(network);
  const Collapse b(network);
  EXPECT_EQ(a.kept(), b.kept());
  EXPECT_EQ(a.core().values, b.core().values);
  const Collapse first(network, {.trials = 1});
  EXPECT_GE(first.core().num_variables(), a.core().num_variables());
}

/// Two variables with very many neighbours must not be looked through once for each of them.
TEST(Collapse, HubsAreNoTrouble) {
  Network network;
  network.cardinalities.assign(50000, 2);
  network.values = {1.0, 2.0, 3.0, 4.0};
  for (Index i = 2; i < network.num_variables(); ++i) {
    network.scopes.insert(network.scopes.end(), {0, i, i, 1});
    network.scope_start.insert(network.scope_start.end(), {network.scopes.size() - 2, network.scopes.size()});
    network.table_start.insert(network.table_start.end(), {0, 0});
  }
  const Collapse collapse(network);
  EXPECT_EQ(collapse.core().num_variables(), 0);
  // Given the hubs the others are independent: sum over hubs of (sum over x of t(a, x) t(x, b))^(n - 2).
  const double largest = 3.0 * 2.0 + 4.0 * 4.0;
  const double n = 49998.0;
  double sum = 0.0;
  for (const double value : {1.0 + 6.0, 2.0 + 8.0, 3.0 + 12.0, largest}) sum += std::pow(value / largest, n);
  EXPECT_NEAR(collapse.log_constant(), n * std::log(largest) + std::log(sum), 1e-6);
}

/// Lattices whose factors share one table: what is left of them shares it still.
TEST(Collapse, SharedTablesStayShared) {
  Network network;
  network.cardinalities.assign(12, 3);
  network.values = {2.0, 1.0, 0.5, 1.0, 2.0, 1.0, 0.5, 1.0, 3.0};
  for (Index i = 0; i < 12; ++i) {
    for (Index j = 0; j < i; ++j) {
      network.scopes.insert(network.scopes.end(), {i, j});
      network.scope_start.push_back(network.scopes.size());
      network.table_start.push_back(0);
    }
  }
  const Collapse collapse(network, {.most_entries = 1000});
  EXPECT_EQ(collapse.core().num_factors(), 66U);
  EXPECT_EQ(collapse.core().values.size(), 9U);
  EXPECT_NEAR(collapse.log_constant(), 66.0 * std::log(3.0), 1e-12);
  network.cardinalities.resize(6);
  network.scopes.resize(30);
  network.scope_start.resize(16);
  network.table_start.resize(15);
  expect_exact(network);
}

/// Two to eight variables of one to four levels, factors of nothing to four variables, some twice, with zeros and
/// evidence, at any limit.
TEST(Collapse, RandomNetworks) {
  Rng rng(20, 0);
  int possible = 0;
  for (int trial = 0; trial < 400; ++trial) {
    SCOPED_TRACE(trial);
    Network network;
    network.cardinalities.resize(2 + random_below(rng, 6));
    for (Index& levels : network.cardinalities) levels = 1 + random_below(rng, 4);
    const Index n = network.num_variables();
    const double zeros = trial % 2 == 0 ? 0.0 : 0.4 * rng.uniform();
    const Index factors = random_below(rng, 12);
    for (Index f = 0; f < factors; ++f) {
      std::vector<Index> scope(n);
      std::iota(scope.begin(), scope.end(), Index{0});
      for (Index k = 0; k < n; ++k) std::swap(scope[k], scope[k + random_below(rng, n - k)]);
      scope.resize(std::min(n, random_below(rng, 5)));
      std::size_t size = 1;
      for (const Index i : scope) size *= network.cardinalities[i];
      std::vector<double> table(size);
      for (double& value : table) value = rng.uniform() < zeros && size > 1 ? 0.0 : 0.1 + rng.uniform();
      network.add_factor(scope, table);
    }
    if (trial % 3 == 0) {
      const Index i = random_below(rng, n);
      network.observed.assign(n, Network::kFree);
      network.observed[i] = random_below(rng, network.cardinalities[i]);
    }
    const CollapseOptions options{.most_entries = std::exp2(10.0 * rng.uniform())};
    const std::vector<double> logs = log_products(network, states_of(network));
    if (*std::max_element(logs.begin(), logs.end()) == -INFINITY) {
      EXPECT_THROW(Collapse{network}, InputError);  // all is summed out, so it must be noticed
      continue;
    }
    expect_same_law(network, options);
    if (trial % 10 < 2) expect_draws(network, options);
    ++possible;
  }
  EXPECT_GT(possible, 250);
}

}  // namespace poise::collapse_test
