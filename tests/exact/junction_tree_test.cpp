/// Exact inference against enumeration, against answers known otherwise, and at the edges: range, size, zeros, draws.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "exact/junction_tree.hpp"

namespace poise::junction_tree_test {

Index random_below(Rng& rng, std::size_t n) { return static_cast<Index>(rng.uniform() * static_cast<double>(n)); }

std::vector<Index> random_scope(Rng& rng, Index variables, Index size) {
  std::vector<Index> scope(variables);
  std::iota(scope.begin(), scope.end(), Index{0});
  for (Index k = 0; k < variables; ++k) std::swap(scope[k], scope[k + random_below(rng, variables - k)]);
  scope.resize(std::min(size, variables));
  return scope;
}

/// A table of numbers between 0.1 and 1.1, a part of them zero.
void add_random_factor(Network& network, const std::vector<Index>& scope, Rng& rng, double zeros = 0.0) {
  std::size_t size = 1;
  for (const Index i : scope) size *= network.cardinalities[i];
  std::vector<double> table(size);
  for (double& value : table) value = rng.uniform() < zeros ? 0.0 : 0.1 + rng.uniform();
  network.add_factor(scope, table);
}

/// Two to eight variables of one to four levels, factors of nothing to four variables or of all, some twice.
Network random_network(Rng& rng, double zeros) {
  Network network;
  network.cardinalities.resize(2 + random_below(rng, 7));
  for (Index& levels : network.cardinalities) levels = 1 + random_below(rng, 4);
  const Index factors = random_below(rng, 12);
  for (Index f = 0; f < factors; ++f) {
    const Index size = rng.uniform() < 0.03 ? network.num_variables() : random_below(rng, 5);
    const std::vector<Index> scope = random_scope(rng, network.num_variables(), size);
    add_random_factor(network, scope, rng, scope.empty() ? 0.0 : zeros);
    if (rng.uniform() < 0.2) add_random_factor(network, scope, rng);
  }
  return network;
}

Network pairs(Index variables, Index levels) {
  Network network;
  network.cardinalities.assign(variables, levels);
  Rng rng(3, 1);
  for (Index i = 0; i < variables; ++i) {
    for (Index j = 0; j < i; ++j) add_random_factor(network, {j, i}, rng);
  }
  return network;
}

/// An open lattice whose factors share one table.
Network lattice(Index rows, Index columns, Index levels) {
  Network network;
  network.cardinalities.assign(std::size_t{rows} * columns, levels);
  network.values.assign(std::size_t{levels} * levels, 1.0);
  for (Index k = 0; k < levels; ++k) network.values[k * levels + k] = 1.5;
  const auto join = [&](Index a, Index b) {
    network.scopes.insert(network.scopes.end(), {a, b});
    network.scope_start.push_back(network.scopes.size());
    network.table_start.push_back(0);
  };
  for (Index i = 0; i < network.num_variables(); ++i) {
    if (i % columns + 1 < columns) join(i, i + 1);
    if (i + columns < network.num_variables()) join(i, i + columns);
  }
  return network;
}

/// Every state with the sum of its log factors.
struct Enumeration {
  std::vector<std::vector<Index>> states;
  std::vector<double> probabilities;
  double log_partition = -INFINITY;
  Marginals marginals;

  explicit Enumeration(const Network& network) : marginals(network.cardinalities) {
    const Index n = network.num_variables();
    std::vector<Index> x(n, 0);
    for (Index i = 0; i < n; ++i) x[i] = network.is_observed(i) ? network.observed[i] : 0;
    std::vector<double> log_p;
    for (bool more = true; more;) {
      double sum = 0.0;
      for (std::size_t f = 0; f < network.num_factors(); ++f) {
        std::size_t place = 0;
        for (const Index i : network.scope(f)) place = place * network.cardinalities[i] + x[i];
        sum += std::log(network.table(f)[place]);
      }
      states.push_back(x);
      log_p.push_back(sum);
      more = false;
      for (Index i = 0; i < n && !more; ++i) {
        if (network.is_observed(i)) continue;
        more = ++x[i] < network.cardinalities[i];
        if (!more) x[i] = 0;
      }
    }
    const double largest = *std::max_element(log_p.begin(), log_p.end());
    if (largest == -INFINITY) return;
    double sum = 0.0;
    for (const double value : log_p) sum += std::exp(value - largest);
    log_partition = largest + std::log(sum);
    for (std::size_t s = 0; s < states.size(); ++s) {
      probabilities.push_back(std::exp(log_p[s] - largest) / sum);
      for (Index i = 0; i < n; ++i) marginals.of(i)[states[s][i]] += probabilities[s];
    }
  }
};

/// Divides by the sum, which it gives.
double normalise(std::span<double> values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  for (double& value : values) value = sum > 0.0 ? value / sum : 0.0;
  return sum;
}

void expect_same(const Marginals& a, const Marginals& b, double tolerance) {
  ASSERT_EQ(a.start, b.start);
  for (std::size_t k = 0; k < a.values.size(); ++k) ASSERT_NEAR(a.values[k], b.values[k], tolerance) << k;
}

void expect_exact(const Network& network) {
  const Enumeration truth(network);
  const JunctionTree tree(network, plan_elimination(network));
  EXPECT_NEAR(tree.log_partition(), truth.log_partition, 1e-12);
  expect_same(tree.marginals(), truth.marginals, 1e-12);
}

std::string message_of(const Network& network, const ExactOptions& options = {}) {
  try {
    const JunctionTree tree(network, plan_elimination(network), options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(JunctionTree, AgreesWithEnumeration) {
  Rng rng(1, 0);
  int impossible = 0;
  for (int trial = 0; trial < 300; ++trial) {
    SCOPED_TRACE(trial);
    Network network = random_network(rng, trial % 3 == 0 ? 0.0 : 0.4);
    Evidence evidence;
    for (Index i = 0; i < network.num_variables(); ++i) {
      if (rng.uniform() < 0.2) evidence.push_back({i, random_below(rng, network.cardinalities[i])});
    }
    if (trial % 2 == 0) {  // observed variables may also stay in the scopes
      network.observed.assign(network.num_variables(), Network::kFree);
      for (const auto [variable, level] : evidence) network.observed[variable] = level;
    } else {
      try {
        network = condition(network, evidence);
      } catch (const InputError&) {
        continue;
      }
    }
    if (Enumeration(network).log_partition == -INFINITY) {
      const std::string given = evidence.empty() ? "" : " given the evidence";
      EXPECT_EQ(message_of(network), "no state has positive probability" + given);
      ++impossible;
    } else {
      expect_exact(network);
    }
  }
  EXPECT_GT(impossible, 10);
}

TEST(JunctionTree, DrawsNeedNoMarginals) {
  const Network network = lattice(10, 11, 3);  // weights of its largest buckets are not kept
  const EliminationPlan plan = plan_elimination(network);
  EXPECT_GT(plan.draw_operations, 0.0);
  const JunctionTree whole(network, plan);
  ExactOptions options;
  options.marginals = false;
  const JunctionTree for_draws(network, plan, options);
  EXPECT_EQ(for_draws.log_partition(), whole.log_partition());
  Rng one(1, 0), other(1, 0);
  std::vector<Index> a, b;
  for (int k = 0; k < 100; ++k) {
    whole.draw(one, a);
    for_draws.draw(other, b);
    EXPECT_EQ(a, b);
  }
}

/// Hidden variables that all visible ones depend on, so that messages are longer than a row; given the hidden ones the
/// visible are independent.
TEST(JunctionTree, LongMessages) {
  constexpr Index hidden = 11;
  constexpr Index visible = 13;
  Network network;
  network.cardinalities.assign(hidden + visible, 2);
  network.cardinalities[hidden + 2] = 3;
  Rng rng(4, 0);
  for (Index v = hidden; v < hidden + visible; ++v) {
    for (Index h = 0; h < hidden; ++h) add_random_factor(network, {v, h}, rng, h == 3 ? 0.1 : 0.0);
  }
  Marginals truth(network.cardinalities);
  double partition = 0.0;
  for (std::size_t state = 0; state < std::size_t{1} << hidden; ++state) {
    Marginals given(network.cardinalities);
    double product = 1.0;
    for (Index v = hidden; v < hidden + visible; ++v) {
      for (Index x = 0; x < network.cardinalities[v]; ++x) {
        given.of(v)[x] = 1.0;
        for (Index h = 0; h < hidden; ++h) {
          given.of(v)[x] *= network.table((v - hidden) * hidden + h)[2 * x + (state >> h & 1)];
        }
      }
      product *= normalise(given.of(v));
    }
    partition += product;
    for (Index h = 0; h < hidden; ++h) given.of(h)[state >> h & 1] = 1.0;
    for (std::size_t k = 0; k < given.values.size(); ++k) truth.values[k] += product * given.values[k];
  }
  for (double& value : truth.values) value /= partition;
  const EliminationPlan plan = plan_elimination(network);
  EXPECT_EQ(plan.width, hidden);
  const JunctionTree tree(network, plan);
  EXPECT_NEAR(tree.log_partition(), std::log(partition), 1e-12 * std::abs(std::log(partition)));
  expect_same(tree.marginals(), truth, 1e-12);
}

TEST(JunctionTree, NothingToDo) {
  Network network;
  EXPECT_EQ(JunctionTree(network, plan_elimination(network)).log_partition(), 0.0);
  network.cardinalities = {1, 3, 2};
  network.add_factor({}, std::vector<double>{5.0});
  expect_exact(network);
  network.add_factor({}, std::vector<double>{0.0});
  EXPECT_EQ(message_of(network), "no state has positive probability");
}

/// Conditional probabilities down a tree: each marginal follows from the parent's, and the sum over all states is 1.
TEST(JunctionTree, LargeTree) {
  Network network;
  Rng rng(5, 0);
  for (Index i = 0; i < 4000; ++i) network.cardinalities.push_back(2 + random_below(rng, 3));
  Marginals truth(network.cardinalities);
  add_random_factor(network, {0}, rng);
  normalise(network.values);
  std::copy(network.values.begin(), network.values.end(), truth.values.begin());
  for (Index i = 1; i < network.num_variables(); ++i) {
    const Index parent = random_below(rng, i);
    const Index levels = network.cardinalities[i];
    add_random_factor(network, {parent, i}, rng);
    for (Index a = 0; a < network.cardinalities[parent]; ++a) {
      const std::span<double> row(network.values.data() + network.table_start[i] + a * levels, levels);
      normalise(row);
      for (Index b = 0; b < levels; ++b) truth.of(i)[b] += truth.of(parent)[a] * row[b];
    }
  }
  const EliminationPlan plan = plan_elimination(network);
  EXPECT_EQ(plan.width, 1);
  const JunctionTree tree(network, plan);
  EXPECT_NEAR(tree.log_partition(), 0.0, 1e-12);
  expect_same(tree.marginals(), truth, 1e-12);
}

/// Every pair factor is multiplied by 10^(300 (b - a)), in four factors: along the chain all of it cancels but what the
/// ends put right. Products within a clique reach 10^1200. Logarithms of that size, 2763, are rounded to 2e-13, a few
/// at a time, which is what a probability may be off by, relatively.
TEST(JunctionTree, TinyBesideHuge) {
  constexpr Index n = 500;
  constexpr int times = 4;
  Network plain;
  plain.cardinalities.assign(n, 2);
  Rng rng(6, 0);
  for (Index i = 1; i < n; ++i)
    add_random_factor(plain, i % 7 == 0 ? std::vector{i, i - 1} : std::vector{i - 1, i}, rng);
  Network wild = plain;
  for (int k = 0; k < times; ++k) {
    for (Index i = 1; i < n; ++i) wild.add_factor(std::vector{i - 1, i}, std::vector{1.0, 1e300, 1e-300, 1.0});
    wild.add_factor(std::vector<Index>{0}, std::vector{1.0, 1e300});
    wild.add_factor(std::vector<Index>{n - 1}, std::vector{1.0, 1e-300});
  }
  const JunctionTree expected(plain, plan_elimination(plain));
  const JunctionTree tree(wild, plan_elimination(wild));
  expect_same(tree.marginals(), expected.marginals(), 2e-12);
  EXPECT_NEAR(tree.log_partition(), expected.log_partition(), n * 2e-12);
}

/// Numbers from 1e-300 to 1e300 at random: 40 factors, so logarithms up to 28000, rounded to 4e-12 at most a few times.
TEST(JunctionTree, AnyRange) {
  Rng rng(7, 0);
  for (int trial = 0; trial < 30; ++trial) {
    SCOPED_TRACE(trial);
    Network network;
    network.cardinalities = {2, 3, 2, 2, 3, 2, 2};
    for (int f = 0; f < 40; ++f) {
      add_random_factor(network, random_scope(rng, 7, 1 + random_below(rng, 3)), rng);
      double* const last = network.values.data() + network.values.size();
      for (std::size_t k = 1; k <= network.table_size(network.num_factors() - 1); ++k) {
        last[-static_cast<std::ptrdiff_t>(k)] *= std::pow(10.0, std::round(600.0 * rng.uniform() - 300.0));
      }
    }
    const Enumeration truth(network);
    const JunctionTree tree(network, plan_elimination(network));
    EXPECT_NEAR(tree.log_partition(), truth.log_partition, 1e-10);
    expect_same(tree.marginals(), truth.marginals, 1e-10);
  }
}

/// States drawn against their probabilities.
void expect_law(const Network& network, std::uint64_t seed) {
  constexpr int draws = 100000;
  const Enumeration truth(network);
  const JunctionTree tree(network, plan_elimination(network));
  std::map<std::vector<Index>, int> counts;
  Rng rng(seed, 0);
  std::vector<Index> x;
  for (int k = 0; k < draws; ++k) {
    tree.draw(rng, x);
    ++counts[x];
  }
  double chi_square = 0.0;
  double rest_expected = 0.0;
  double rest_count = 0.0;
  int cells = -1;
  const auto add = [&](double expected, double count) {
    chi_square += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (std::size_t s = 0; s < truth.states.size(); ++s) {
    const double expected = draws * truth.probabilities[s];
    const int count = counts.contains(truth.states[s]) ? counts[truth.states[s]] : 0;
    if (expected == 0.0) {
      ASSERT_EQ(count, 0);
    } else if (expected < 10.0) {
      rest_expected += expected;
      rest_count += count;
    } else {
      add(expected, count);
    }
  }
  if (rest_expected > 10.0) add(rest_expected, rest_count);
  EXPECT_LT(std::abs(chi_square - cells) / std::sqrt(2.0 * cells), 6.0);
}

TEST(JunctionTree, DrawsHaveTheLaw) {
  Rng rng(8, 0);
  Network network;
  network.cardinalities = {2, 3, 1, 4, 2, 2, 3};
  for (const std::vector<Index>& scope :
       std::vector<std::vector<Index>>{{0, 1}, {3, 1, 2}, {0, 3}, {5}, {6, 5}, {3, 4}}) {
    add_random_factor(network, scope, rng, 0.15);
  }
  expect_law(network, 1);
  expect_law(condition(network, {{4, 1}, {0, 1}}), 2);
}

TEST(JunctionTree, DrawsFromOneLargeClique) {
  expect_law(pairs(10, 2), 3);
  expect_law(pairs(17, 2), 4);  // weights of its first bucket, 64 groups of 2048, are not kept
}

TEST(JunctionTree, DrawsOfManyLevels) { expect_law(pairs(2, 100), 5); }

TEST(JunctionTree, RefusesWhatDoesNotFit) {
  const std::string incomplete = message_of(pairs(60, 2));
  EXPECT_EQ(
      incomplete,
      "exact inference needs more than 8.0 TiB of tables (induced width 59 or more), more than the limit of 4.0 GiB; "
      "observe more variables, allow more memory, or sample");
  ExactOptions options;
  options.memory_limit = 2e5;
  const std::string limited = message_of(lattice(12, 12, 2), options);
  EXPECT_TRUE(limited.starts_with("exact inference needs ")) << limited;
  EXPECT_NE(limited.find("(induced width 1"), std::string::npos) << limited;
  EXPECT_NE(limited.find("), more than the limit of 195.3 KiB; "), std::string::npos) << limited;
  EXPECT_EQ(message_of(lattice(12, 12, 2)), "");
}

TEST(JunctionTree, ProgressAndStop) {
  const Network network = lattice(14, 14, 2);
  const EliminationPlan plan = plan_elimination(network);
  std::vector<double> parts;
  ExactOptions options;
  options.progress = [&](double part) {
    parts.push_back(part);
    return true;
  };
  const JunctionTree tree(network, plan, options);
  EXPECT_GT(parts.size(), 1U);
  EXPECT_TRUE(std::is_sorted(parts.begin(), parts.end()));
  EXPECT_LE(parts.back(), 1.0);
  options.progress = [](double) { return false; };
  EXPECT_THROW(JunctionTree(network, plan, options), ExactStopped);
}

TEST(EliminationPlan, IsAJunctionTree) {
  Rng rng(9, 0);
  for (int trial = 0; trial < 60; ++trial) {
    SCOPED_TRACE(trial);
    Network network;
    const Index n = 3 + random_below(rng, 30);
    for (Index i = 0; i < n; ++i) network.cardinalities.push_back(1 + random_below(rng, 4));
    for (Index f = 0; f < n; ++f) add_random_factor(network, random_scope(rng, n, 1 + random_below(rng, 3)), rng);
    network.observed.assign(n, Network::kFree);
    network.observed[random_below(rng, n)] = 0;
    const EliminationPlan plan = plan_elimination(network);
    ASSERT_TRUE(plan.complete);
    std::vector<std::set<Index>> cliques;
    for (const std::vector<Index>& clique : plan.cliques) cliques.emplace_back(clique.begin(), clique.end());
    const auto inside = [](const std::set<Index>& a, const std::set<Index>& b) {
      return std::includes(b.begin(), b.end(), a.begin(), a.end());
    };
    std::vector<Index> sorted = plan.order;
    std::sort(sorted.begin(), sorted.end());
    std::vector<Index> expected;
    for (Index i = 0; i < n; ++i) {
      if (network.levels(i) > 1) expected.push_back(i);
    }
    EXPECT_EQ(sorted, expected);
    for (std::size_t f = 0; f < network.num_factors(); ++f) {
      std::set<Index> scope;
      for (const Index i : network.scope(f)) {
        if (network.levels(i) > 1) scope.insert(i);
      }
      EXPECT_TRUE(std::any_of(cliques.begin(), cliques.end(), [&](const auto& c) { return inside(scope, c); }));
    }
    std::map<Index, int> subtrees;  // of cliques with the variable: those whose parent does not have it
    for (Index c = 0; c < cliques.size(); ++c) {
      for (Index d = 0; d < cliques.size(); ++d) EXPECT_TRUE(c == d || !inside(cliques[c], cliques[d]));
      const bool root = plan.parent[c] == c;
      EXPECT_TRUE(root || plan.parent[c] > c);
      std::vector<Index> shared;
      for (const Index i : plan.cliques[c]) {
        if (root || !cliques[plan.parent[c]].contains(i)) {
          ++subtrees[i];
        } else {
          shared.push_back(i);
        }
      }
      EXPECT_EQ(plan.separators[c], shared);
    }
    EXPECT_EQ(subtrees.size(), expected.size());
    for (const auto& [variable, count] : subtrees) EXPECT_EQ(count, 1) << variable;
    EXPECT_EQ(plan_elimination(network).order, plan.order);
  }
}

TEST(EliminationPlan, LargeLatticesAreGivenUpSoon) {
  const EliminationPlan plan = plan_elimination(lattice(250, 250, 4));
  EXPECT_FALSE(plan.complete);
  EXPECT_TRUE(plan.cliques.empty());
  EXPECT_GT(plan.bytes, 8e12);
}

/// Two variables with very many neighbours must not be looked through once for each of them.
TEST(EliminationPlan, HubsAreNoTrouble) {
  Network network;
  network.cardinalities.assign(100000, 2);
  network.values = {1.0, 2.0, 3.0, 4.0};
  for (Index i = 2; i < network.num_variables(); ++i) {
    network.scopes.insert(network.scopes.end(), {0, i, i, 1});
    network.scope_start.insert(network.scope_start.end(), {network.scopes.size() - 2, network.scopes.size()});
    network.table_start.insert(network.table_start.end(), {0, 0});
  }
  const EliminationPlan plan = plan_elimination(network);
  EXPECT_EQ(plan.width, 2);
  EXPECT_LT(plan.bytes, 3e8);
  // Given the hubs the others are independent: sum over hubs of (sum over x of t(a, x) t(x, b))^(n - 2).
  const double largest = 3.0 * 2.0 + 4.0 * 4.0;
  const double n = 99998.0;
  double sum = 0.0;
  for (const double value : {1.0 + 6.0, 2.0 + 8.0, 3.0 + 12.0, largest}) sum += std::pow(value / largest, n);
  EXPECT_NEAR(JunctionTree(network, plan).log_partition(), n * std::log(largest) + std::log(sum), 1e-6);
}

}  // namespace poise::junction_tree_test
