/// Weighted tempered Gibbs: rates that balance, and draws at equal times that have the law of the process.
#include <gtest/gtest.h>

#include <cmath>

#include <poise/extend/check/exactness.hpp>
#include "kernels/weighted_gibbs.hpp"
#include "support/selection_cases.hpp"

namespace poise::selection_kernel_test {

using namespace poise::testing;

using Matrix = std::vector<std::vector<double>>;

/// Rates between all states, as the kernel has them.
Matrix rates_of(const WeightedGibbs& kernel, const SelectionTarget& target, const StateSpace& space) {
  Matrix rates(space.size(), std::vector<double>(space.size(), 0.0));
  for (std::size_t s = 0; s < space.size(); ++s) {
    if (space.probabilities[s] == 0.0) continue;
    const SelectionTarget::State state = target.make_state(space.states[s]);
    WeightedGibbs::Scratch scratch(target);
    kernel.look(target, state, scratch);
    EXPECT_EQ(scratch.failure, nullptr);
    for (Index j = 0; j < target.num_variables(); ++j) {
      const double rate = numbers_of(scratch.rates)[j] / scratch.scale;
      std::vector<Value> after = space.states[s];
      after[j] ^= 1;
      rates[s][space.number(after)] = rate;
      rates[s][s] -= rate;
    }
  }
  return rates;
}

Matrix product(const Matrix& a, const Matrix& b) {
  const std::size_t n = a.size();
  Matrix out(n, std::vector<double>(n, 0.0));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n; ++k) {
      if (a[i][k] == 0.0) continue;
      for (std::size_t j = 0; j < n; ++j) out[i][j] += a[i][k] * b[k][j];
    }
  }
  return out;
}

/// exp(Q): a uniformised chain over a short time, squared again and again.
Matrix law_of_a_step(const Matrix& rates) {
  const std::size_t n = rates.size();
  double largest = 1.0;
  for (std::size_t s = 0; s < n; ++s) largest = std::max(largest, -rates[s][s]);
  const int halvings = static_cast<int>(std::ceil(std::log2(largest))) + 4;
  const double time = std::ldexp(1.0, -halvings);
  Matrix sum(n, std::vector<double>(n, 0.0));
  Matrix term = sum;
  for (std::size_t s = 0; s < n; ++s) sum[s][s] = term[s][s] = 1.0;
  for (int k = 1; k <= 12; ++k) {
    term = product(term, rates);
    for (std::size_t s = 0; s < n; ++s) {
      for (std::size_t t = 0; t < n; ++t) sum[s][t] += term[s][t] *= time / k;
    }
  }
  for (int k = 0; k < halvings; ++k) sum = product(sum, sum);
  return sum;
}

TEST(WeightedGibbs, RatesBalanceUnderEveryPrior) {
  for (const SelectionCase& one : selection_cases()) {
    for (const double elsewhere : {1.0, 5.0}) {
      SCOPED_TRACE(one.name);
      const SelectionTarget target(make_case(one, 8)->law);
      const StateSpace space = enumerate_states(target);
      const Matrix rates = rates_of(WeightedGibbs(elsewhere), target, space);
      double worst = 0.0;
      for (std::size_t s = 0; s < space.size(); ++s) {
        for (std::size_t t = 0; t < s; ++t) {
          const double flow = space.probabilities[s] * rates[s][t];
          const double back = space.probabilities[t] * rates[t][s];
          worst = std::max(worst, std::abs(flow - back));
          ASSERT_NEAR(flow, back, 1e-10 * std::max(flow, back)) << s << " " << t;
        }
      }
      EXPECT_LE(worst, 1e-12);
    }
  }
}

/// P_j of the paper, from the probabilities of all states.
TEST(WeightedGibbs, RatesAreThoseOfThePaper) {
  const SelectionTarget target(make_case({"default", {}}, 7)->law);
  const StateSpace space = enumerate_states(target);
  const Matrix rates = rates_of(WeightedGibbs(5.0), target, space);
  for (std::size_t s = 0; s < space.size(); ++s) {
    for (Index j = 0; j < 7; ++j) {
      std::vector<Value> other = space.states[s];
      other[j] ^= 1;
      const double here = space.probabilities[s];
      const double there = space.probabilities[space.number(other)];
      const double included = (space.states[s][j] > 0 ? here : there) / (here + there);
      const double rate = (included + 5.0 / 7.0) / (here / (here + there));
      ASSERT_NEAR(rates[s][space.number(other)], rate, 1e-9 * rate);
    }
  }
}

TEST(WeightedGibbs, DrawsAtEqualTimesHaveTheLawOfTheProcess) {
  const SelectionTarget target(make_case({"default", {}}, 5)->law);
  const StateSpace space = enumerate_states(target);
  const WeightedGibbs kernel(1.0);
  const Matrix law = law_of_a_step(rates_of(kernel, target, space));
  double worst = 0.0;
  for (std::size_t s = 0; s < space.size(); ++s) {
    for (std::size_t t = 0; t < space.size(); ++t) {
      worst = std::max(worst, std::abs(space.probabilities[s] * law[s][t] - space.probabilities[t] * law[t][s]));
    }
  }
  EXPECT_LE(worst, 1e-12);
  // Steps from single states against their rows.
  for (const std::size_t start : {std::size_t{0}, std::size_t{5}, space.size() - 1}) {
    constexpr int kSteps = 20000;
    std::vector<double> count(space.size(), 0.0);
    Rng rng(3, start);
    WeightedGibbs::Scratch scratch(target);
    for (int k = 0; k < kSteps; ++k) {
      SelectionTarget::State state = target.make_state(space.states[start]);
      kernel.prepare(target, state, scratch);
      kernel.step(target, state, scratch, rng);
      ++count[space.number(state.x)];
    }
    double chi = 0.0;
    double degrees = -1.0;
    double rare = 0.0, rare_expected = 0.0;
    for (std::size_t t = 0; t < space.size(); ++t) {
      const double expected = kSteps * law[start][t];
      if (expected < 10.0) {
        rare += count[t];
        rare_expected += expected;
        continue;
      }
      chi += (count[t] - expected) * (count[t] - expected) / expected;
      degrees += 1.0;
    }
    if (rare_expected > 1.0) {
      chi += (rare - rare_expected) * (rare - rare_expected) / rare_expected;
      degrees += 1.0;
    }
    EXPECT_LT((chi - degrees) / std::sqrt(2.0 * degrees), 6.0) << start;
  }
}

TEST(WeightedGibbs, MeanHoldingTimesGiveTheMarginals) {
  for (const SelectionCase& one : selection_cases()) {
    SCOPED_TRACE(one.name);
    const SelectionTarget target(make_case(one, 8)->law);
    const StateSpace space = enumerate_states(target);
    std::vector<double> truth(8, 0.0);
    for (std::size_t s = 0; s < space.size(); ++s) {
      for (Index j = 0; j < 8; ++j) truth[j] += space.states[s][j] * space.probabilities[s];
    }
    const WeightedGibbs kernel(1.0);
    std::vector<Value> x(8, 0);
    for (const Index j : target.law().forced()) x[j] = 1;
    SelectionTarget::State state = target.make_state(x);
    WeightedGibbs::Scratch scratch(target);
    kernel.prepare(target, state, scratch);
    scratch.rao_blackwell.sums.assign(8, 0.0);
    Rng rng(6, 1);
    constexpr int kBatches = 50;
    std::vector<std::vector<double>> means(8);
    std::vector<double> before(8, 0.0);
    std::uint64_t count = 0;
    for (int batch = 0; batch < kBatches; ++batch) {
      for (int step = 0; step < 200; ++step) kernel.step(target, state, scratch, rng);
      const RaoBlackwell& sums = scratch.rao_blackwell;
      for (Index j = 0; j < 8; ++j) {
        means[j].push_back((sums.sums[j] - before[j]) / static_cast<double>(sums.count - count));
      }
      before = sums.sums;
      count = sums.count;
    }
    for (Index j = 0; j < 8; ++j) {
      double mean = 0.0, squares = 0.0;
      for (const double m : means[j]) mean += m / kBatches;
      for (const double m : means[j]) squares += (m - mean) * (m - mean);
      const double error = std::sqrt(squares / (kBatches - 1.0) / kBatches);
      EXPECT_NEAR(mean, truth[j], 6.0 * error + 1e-9) << j;
    }
  }
}

/// Odds beyond the range of doubles: a strong signal in many observations, and a start without it.
TEST(WeightedGibbs, RatesOutOfRangeAreScaled) {
  RegressionTable table = drawn_table(4000, 10, 2);
  for (std::size_t i = 0; i < 4000; ++i) table.y[i] = 50.0 * table.x[i] + table.y[i];
  const auto problem = regression_problem(std::move(table), Scaling::standard, {});
  const SelectionTarget target(problem->law);
  const WeightedGibbs kernel(1.0);
  std::vector<Value> x(10, 1);
  x[0] = 0;
  SelectionTarget::State state = target.make_state(x);
  EXPECT_GT(target.log_odds(state, 0), 1000.0);
  WeightedGibbs::Scratch scratch(target);
  kernel.prepare(target, state, scratch);
  Rng rng(1, 1);
  kernel.step(target, state, scratch, rng);
  EXPECT_EQ(scratch.failure, nullptr);
  EXPECT_EQ(state.x[0], 1);
}

}  // namespace poise::selection_kernel_test
