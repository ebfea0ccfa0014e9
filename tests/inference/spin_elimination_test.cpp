/// Elimination of spins in tables: against enumeration, against max-product on networks, and where it gives up.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/model.hpp>
#include <poise/network.hpp>
#include <poise/optimize.hpp>
#include "exact/max_product.hpp"
#include "inference/optimize/enumerate_spins.hpp"
#include "inference/optimize/spin_elimination.hpp"
#include "models/as_network.hpp"
#include "models/ising/ising_model.hpp"

namespace poise::spin_elimination_test {

std::vector<Edge> random_edges(Index n, double density, Rng& rng) {
  std::vector<Edge> edges;
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < i; ++j) {
      if (rng.uniform() < density) edges.push_back({j, i, std::floor(9.0 * rng.uniform()) - 4.0});
    }
  }
  return edges;
}

IsingModel glass(Index side, double field, std::uint64_t seed) {
  Rng rng(seed, 0);
  IsingModel ising;
  ising.name = "glass";
  ising.variables = side * side;
  for (Index i = 0; i < ising.variables; ++i) {
    ising.field.push_back(field * (rng.uniform() - 0.5));
    if (i % side + 1 < side) ising.edges.push_back({i, i + 1, rng.uniform() < 0.5 ? -1.0 : 1.0});
    if (i + side < ising.variables) ising.edges.push_back({i, i + side, rng.uniform() < 0.5 ? -1.0 : 1.0});
  }
  return ising;
}

TEST(SpinElimination, IsTheBestOfAllStates) {
  for (const double density : {0.0, 0.1, 0.3, 1.0}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      for (const Index n : {1U, 2U, 7U, 14U}) {
        Rng rng(seed, n);
        std::vector<double> field(n);
        for (double& value : field) value = seed % 2 == 0 ? 0.0 : std::floor(5.0 * rng.uniform()) - 2.0;
        const SpinProblem problem = spin_problem(field, random_edges(n, density, rng));
        SearchRecord best{SolutionPool(1), 0, {}, {}};
        enumerate_spins(problem, {}, best);
        const auto found = eliminate_spins(problem);
        ASSERT_TRUE(found);
        EXPECT_EQ(problem.value(*found), best.pool.best().value) << density << " " << seed << " " << n;
      }
    }
  }
}

TEST(SpinElimination, ProvesWhatTheNetworkProves) {
  for (const double field : {0.0, 1.0}) {
    const Model model = ising_model(glass(12, field, 5));
    OptimizeOptions options;
    options.seconds = 60.0;
    const OptimizeAnswer answer = find_best(model, options);
    EXPECT_TRUE(answer.optimal);
    EXPECT_EQ(answer.reason, "all variables were maximised out one after another");
    EXPECT_EQ(answer.bound, answer.best().objective);
    const auto network = as_network(model);
    const double most = most_probable_states(*network, plan_exact(*network, {}), 1).front().log_value;
    EXPECT_NEAR(answer.best().objective, most, 1e-9);
    // A list is proved at its head.
    options.solutions = 4;
    options.sweeps = 20;
    const OptimizeAnswer list = find_best(model, options);
    EXPECT_TRUE(list.optimal);
    EXPECT_EQ(list.best().objective, answer.best().objective);
  }
}

TEST(SpinElimination, LeavesWideProblems) {
  Rng rng(3, 0);
  EXPECT_FALSE(eliminate_spins(spin_problem(std::vector<double>(60, 0.0), random_edges(60, 1.0, rng))));
}

// The energies of whole numbers are whole numbers, however large.
TEST(SpinElimination, ObjectivesOfWholeNumbersAreExact) {
  Rng rng(4, 0);
  std::vector<double> numbers(30);
  for (double& number : numbers) number = std::floor(1e6 * rng.uniform());
  Qubo qubo;
  double sum = 0.0;
  for (const double number : numbers) sum += number;
  for (Index i = 0; i < numbers.size(); ++i) {
    qubo.linear.push_back(4 * numbers[i] * (numbers[i] - sum));
    for (Index j = 0; j < i; ++j) qubo.quadratic.push_back({j, i, 8 * numbers[i] * numbers[j]});
  }
  const Model model = ising_model(ising_of_qubo(std::move(qubo), {1.0, false, sum * sum, "partition"}));
  OptimizeOptions options;
  options.sweeps = 50;
  const OptimizeAnswer answer = find_best(model, options);
  double difference = 0.0;
  for (Index i = 0; i < numbers.size(); ++i) difference += answer.best().state[i] != 0 ? numbers[i] : -numbers[i];
  EXPECT_EQ(answer.best().objective, difference * difference);
}

}  // namespace poise::spin_elimination_test
