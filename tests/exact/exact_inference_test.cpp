/// Exact inference in slices and on threads: against enumeration, bit by bit the same, and refused with numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "exact/exact_inference.hpp"

namespace poise::exact_inference_test {

Index random_below(Rng& rng, std::size_t n) { return static_cast<Index>(rng.uniform() * static_cast<double>(n)); }

void add_random_factor(Network& network, const std::vector<Index>& scope, Rng& rng, double zeros) {
  std::size_t size = 1;
  for (const Index i : scope) size *= network.cardinalities[i];
  std::vector<double> table(size);
  for (double& value : table) value = rng.uniform() < zeros ? 0.0 : 0.1 + rng.uniform();
  network.add_factor(scope, table);
}

/// Up to ten variables of one to four levels and factors of two or three of them; some variables observed, in the
/// scopes or out of them. With few factors it falls apart.
Network random_network(Rng& rng, Index factors, double zeros) {
  Network network;
  network.cardinalities.resize(5 + random_below(rng, 6));
  for (Index& levels : network.cardinalities) levels = 1 + random_below(rng, 3);
  network.cardinalities[0] = 4;
  const Index n = network.num_variables();
  for (Index f = 0; f < factors; ++f) {
    std::vector<Index> scope(n);
    std::iota(scope.begin(), scope.end(), Index{0});
    for (Index k = 0; k < 3; ++k) std::swap(scope[k], scope[k + random_below(rng, n - k)]);
    scope.resize(2 + f % 2);
    add_random_factor(network, scope, rng, zeros);
  }
  network.observed.assign(n, Network::kFree);
  network.observed[n - 1] = random_below(rng, network.cardinalities[n - 1]);
  return network;
}

Network lattice(Index rows, Index columns, std::uint64_t seed) {
  Network network;
  network.cardinalities.assign(std::size_t{rows} * columns, 2);
  Rng rng(seed, 0);
  for (Index i = 0; i < network.num_variables(); ++i) {
    if (i % columns + 1 < columns) add_random_factor(network, {i, i + 1}, rng, 0.0);
    if (i + columns < network.num_variables()) add_random_factor(network, {i, i + columns}, rng, 0.0);
  }
  return network;
}

struct Truth {
  Marginals marginals;
  double log_partition = -INFINITY;
};

Truth enumerate(const Network& network) {
  Truth truth{Marginals(network.cardinalities)};
  const Index n = network.num_variables();
  std::vector<Index> x(n, 0);
  for (Index i = 0; i < n; ++i) x[i] = network.is_observed(i) ? network.observed[i] : 0;
  double sum = 0.0;
  for (bool more = true; more;) {
    double p = 1.0;
    for (std::size_t f = 0; f < network.num_factors(); ++f) {
      std::size_t place = 0;
      for (const Index i : network.scope(f)) place = place * network.cardinalities[i] + x[i];
      p *= network.table(f)[place];
    }
    sum += p;
    for (Index i = 0; i < n; ++i) truth.marginals.of(i)[x[i]] += p;
    more = false;
    for (Index i = 0; i < n && !more; ++i) {
      if (network.is_observed(i)) continue;
      more = ++x[i] < network.cardinalities[i];
      if (!more) x[i] = 0;
    }
  }
  for (double& value : truth.marginals.values) value /= sum;
  truth.log_partition = std::log(sum);
  return truth;
}

/// The plan that conditions on some variables, whether it needs to or not.
ExactPlan sliced(const Network& network, std::vector<Index> conditioned) {
  ExactPlan plan;
  Network slice = network;
  if (slice.observed.empty()) slice.observed.assign(network.num_variables(), Network::kFree);
  for (const Index i : conditioned) {
    plan.slices *= network.levels(i);
    slice.observed[i] = 0;
  }
  plan.tree = plan_elimination(slice);
  plan.conditioned = std::move(conditioned);
  return plan;
}

void expect_same(const ExactAnswer& answer, const Truth& truth) {
  EXPECT_NEAR(answer.log_partition, truth.log_partition, 1e-12);
  ASSERT_EQ(answer.marginals.start, truth.marginals.start);
  for (std::size_t k = 0; k < truth.marginals.values.size(); ++k) {
    ASSERT_NEAR(answer.marginals.values[k], truth.marginals.values[k], 1e-12) << k;
  }
}

std::string message_of(const Network& network, const ExactPlan& plan, const ExactOptions& options) {
  try {
    (void)solve_exact(network, plan, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ExactInference, SlicesAgreeWithEnumeration) {
  Rng rng(21, 0);
  int impossible = 0;
  int passed_over = 0;
  for (int trial = 0; trial < 200; ++trial) {
    SCOPED_TRACE(trial);
    const Network network = random_network(rng, 3 + trial % 9, trial % 3 == 0 ? 0.0 : 0.35);
    std::vector<Index> conditioned;
    for (Index i = 0; i + 1 < network.num_variables() && conditioned.size() < 3; ++i) {
      if (network.levels(i) > 1 && rng.uniform() < 0.6) conditioned.push_back(i);
    }
    const ExactPlan plan = sliced(network, conditioned);
    const Truth truth = enumerate(network);
    if (truth.log_partition == -INFINITY) {
      EXPECT_EQ(message_of(network, plan, {}), "no state has positive probability given the evidence");
      ++impossible;
      continue;
    }
    const ExactAnswer answer = solve_exact(network, plan);
    expect_same(answer, truth);
    passed_over += answer.slices < plan.slices ? 1 : 0;
  }
  EXPECT_GT(impossible, 5);
  EXPECT_GT(passed_over, 20);
}

/// A limit below what one tree takes: variables are chosen, and each slice keeps to the limit.
TEST(ExactInference, ConditionsWhereMemoryIsShort) {
  const Network network = lattice(12, 12, 22);
  const EliminationPlan whole = plan_elimination(network);
  const ExactAnswer expected = solve_exact(network, plan_exact(network, {}));
  const double least = plan_elimination(lattice(2, 2, 1)).bytes;  // what there is beside tables
  for (const double part : {0.5, 0.1, 0.02}) {
    SCOPED_TRACE(part);
    ExactOptions options;
    options.memory_limit = 1.2 * least + part * (whole.bytes - least);
    const ExactPlan plan = plan_exact(network, {.memory_limit = options.memory_limit});
    ASSERT_TRUE(plan.fits(options.memory_limit));
    EXPECT_GT(plan.conditioned.size(), 0U);
    EXPECT_EQ(plan.slices, std::exp2(static_cast<double>(plan.conditioned.size())));
    EXPECT_EQ(plan_exact(network, {.memory_limit = options.memory_limit}).conditioned, plan.conditioned);
    const ExactAnswer answer = solve_exact(network, plan, options);
    EXPECT_EQ(answer.slices, plan.slices);
    EXPECT_NEAR(answer.log_partition, expected.log_partition, 1e-10);
    for (std::size_t k = 0; k < expected.marginals.values.size(); ++k) {
      ASSERT_NEAR(answer.marginals.values[k], expected.marginals.values[k], 1e-11) << k;
    }
  }
}

TEST(ExactInference, ThreadsChangeNothing) {
  const Network network = lattice(14, 14, 23);
  ExactPlan one = plan_exact(network, {});
  ASSERT_GT(one.operations(), 4e6);  // enough to be shared out
  for (const ExactPlan& plan : {one, sliced(network, {105})}) {
    SCOPED_TRACE(plan.slices);
    ExactOptions options;
    options.threads = 1;
    const ExactAnswer expected = solve_exact(network, plan, options);
    for (const unsigned threads : {2U, 3U}) {
      for (const double memory : {1.0, 1.01 * plan.tree.bytes, 1e9}) {
        options.threads = threads;
        options.memory_limit = std::max(memory, plan.tree.bytes);
        const ExactAnswer answer = solve_exact(network, plan, options);
        EXPECT_EQ(answer.log_partition, expected.log_partition);
        EXPECT_EQ(answer.marginals.values, expected.marginals.values);
      }
    }
  }
}

/// Five variables of many levels, all joined, with large messages that not all have the same variables: chunks sum
/// apart what they share.
TEST(ExactInference, LargeTablesInChunks) {
  Network network;
  network.cardinalities = {9, 7, 11, 8, 10, 5, 6, 3};
  Rng rng(24, 0);
  for (const std::vector<Index>& scope : std::vector<std::vector<Index>>{
           {0, 1, 2}, {2, 3, 4}, {0, 3, 4}, {1, 4}, {1, 3}, {5, 0, 1, 3}, {6, 2, 4}, {7, 6, 1}, {7, 2}}) {
    add_random_factor(network, scope, rng, 0.1);
  }
  const Truth truth = enumerate(network);
  ExactOptions options;
  options.threads = 1;
  const ExactAnswer expected = solve_exact(network, plan_exact(network, {}), options);
  expect_same(expected, truth);
  options.threads = 3;
  EXPECT_EQ(solve_exact(network, plan_exact(network, {}), options).marginals.values, expected.marginals.values);
}

TEST(ExactInference, RefusesWithNumbers) {
  const Network network = lattice(14, 14, 25);
  ExactOptions options;
  options.memory_limit = 1.5e6;
  options.seconds = 1e-3;
  const ExactPlan plan = plan_exact(network, {.memory_limit = options.memory_limit});
  const std::string sentence = message_of(network, plan, options);
  EXPECT_TRUE(sentence.starts_with("exact inference would need ")) << sentence;
  for (const std::string part : {" slices (conditioning on ", " variables) with ", " MiB of tables each, about ",
                                 "; the limits are 1.4 MiB and 0.001 s: "}) {
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  }
  const std::string slow = message_of(network, plan_exact(network, {}), {.seconds = 1e-3});
  EXPECT_TRUE(slow.starts_with("exact inference would visit ")) << slow;
}

TEST(ExactInference, StopsWhenTold) {
  const Network network = lattice(14, 14, 26);
  const ExactPlan plan = sliced(network, {90, 91, 104, 105});
  std::vector<double> parts;
  ExactOptions options;
  options.progress = [&](double part) {
    parts.push_back(part);
    return parts.size() < 4;
  };
  EXPECT_THROW((void)solve_exact(network, plan, options), ExactStopped);
  EXPECT_EQ(parts.size(), 4U);
  EXPECT_TRUE(std::is_sorted(parts.begin(), parts.end()));
  EXPECT_LE(parts.back(), 1.0);
}

/// Parts by themselves multiply to the whole.
TEST(Parts, MakeUpTheNetwork) {
  Rng rng(27, 0);
  int several = 0;
  for (int trial = 0; trial < 100; ++trial) {
    SCOPED_TRACE(trial);
    Network network = random_network(rng, 2 + trial % 4, trial % 2 == 0 ? 0.0 : 0.1);
    const Truth truth = enumerate(network);
    if (truth.log_partition == -INFINITY) continue;
    const std::vector<std::vector<Index>> parts = connected_components(network);
    several += parts.size() > 1 ? 1 : 0;
    double log_partition = log_constant_of(network);
    std::vector<bool> seen(network.num_variables(), false);
    for (const std::vector<Index>& variables : parts) {
      const Network part = component_network(network, variables);
      const ExactAnswer answer = solve_exact(part, plan_exact(part, {}));
      log_partition += answer.log_partition;
      for (Index k = 0; k < variables.size(); ++k) {
        seen[variables[k]] = true;
        EXPECT_EQ(part.variable_name(k).empty(), false);
        for (Index level = 0; level < network.cardinalities[variables[k]]; ++level) {
          ASSERT_NEAR(answer.marginals.of(k)[level], truth.marginals.of(variables[k])[level], 1e-12);
        }
      }
    }
    EXPECT_NEAR(log_partition, truth.log_partition, 1e-12);
    for (Index i = 0; i < network.num_variables(); ++i) EXPECT_EQ(seen[i], network.levels(i) > 1);
  }
  EXPECT_GT(several, 20);
}

TEST(Parts, RefuseWhatIsNone) {
  const Network network = lattice(2, 3, 28);
  const auto message = [&](const std::vector<Index>& variables) -> std::string {
    try {
      (void)component_network(network, variables);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({0, 1, 2}), "a part of a network: factor 1 (x[0], x[3]) joins it to x[3], which is outside");
  EXPECT_EQ(message({0, 0}), "a part of a network: variable 0 is named twice");
  EXPECT_EQ(message({9}), "a part of a network: variable 9 does not exist");
}

}  // namespace poise::exact_inference_test
