/// Variables of long runs: what is counted is exact, what is estimated is near, however draws are held.
#include "diagnose/batch_counts.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <poise/extend/base/rng.hpp>

namespace poise::batch_counts_test {

namespace detail = diagnose_detail;

/// Chains whose variables change with these probabilities a draw, to any of so many levels, from -1 on.
std::vector<std::int8_t> moving(std::size_t chains, std::size_t draws, const std::vector<double>& rates, int levels) {
  Rng rng(7, 0);
  std::vector<std::int8_t> x(chains * draws * rates.size());
  for (std::size_t k = 0; k < x.size(); ++k) {
    const std::size_t variable = k % rates.size(), draw = k / rates.size() % draws;
    const bool moves = draw == 0 || rng.uniform() < rates[variable];
    x[k] = moves ? static_cast<std::int8_t>(-1 + static_cast<int>(rng.uniform() * levels)) : x[k - rates.size()];
  }
  return x;
}

/// Hides that draws are in memory.
class Columns final : public ColumnSource {
 public:
  explicit Columns(DrawsView draws) : draws_(draws) {}
  [[nodiscard]] std::size_t chains() const override { return draws_.chains; }
  [[nodiscard]] std::size_t draws() const override { return draws_.draws; }
  [[nodiscard]] std::size_t variables() const override { return draws_.variables; }
  [[nodiscard]] std::size_t load(std::size_t first) override {
    return std::min<std::size_t>(700, draws_.variables - first);
  }
  void copy(std::size_t first, std::size_t count, std::int8_t* to, std::size_t stride) const override {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < draws_.chains * draws_.draws; ++k) {
        to[i * stride + k] = draws_.data[k * draws_.variables + first + i];
      }
    }
  }

 private:
  DrawsView draws_;
};

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void expect_same(const std::vector<VariableRow>& a, const std::vector<VariableRow>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    EXPECT_EQ(a[k].variable, b[k].variable);
    EXPECT_EQ(a[k].level, b[k].level);
    EXPECT_TRUE(same(a[k].mean, b[k].mean)) << k;
    EXPECT_TRUE(same(a[k].r_hat, b[k].r_hat)) << k;
    EXPECT_EQ(a[k].transitions, b[k].transitions);
    EXPECT_TRUE(same(a[k].ess, b[k].ess)) << k;
    EXPECT_TRUE(same(a[k].chance, b[k].chance)) << k;
    EXPECT_EQ(a[k].is_estimate, b[k].is_estimate);
  }
}

TEST(BatchCounts, WhatIsCountedIsExact) {
  for (const std::size_t draws : {3, 12, 40, 41, 1000, 1037}) {
    for (const int levels : {2, 4}) {
      const std::vector<double> rates{1.0, 0.3, 0.02, 0.0};
      const std::vector<std::int8_t> x = moving(3, draws, rates, levels);
      const DrawsView view{x.data(), 3, draws, rates.size()};
      const VariablesSummary exact = summarize_variables(view);
      const std::vector<VariableRow> rows = detail::estimated_rows(view, detail::BatchCuts(draws, 3), 0, rates.size());
      ASSERT_EQ(rows.size(), exact.rows.size());
      for (std::size_t k = 0; k < rows.size(); ++k) {
        EXPECT_EQ(rows[k].variable, exact.rows[k].variable);
        EXPECT_EQ(rows[k].level, exact.rows[k].level);
        EXPECT_DOUBLE_EQ(rows[k].mean, exact.rows[k].mean);
        EXPECT_EQ(rows[k].transitions, exact.rows[k].transitions);
        EXPECT_EQ(rows[k].status, exact.rows[k].status);
        if (std::isfinite(exact.rows[k].r_hat)) EXPECT_NEAR(rows[k].r_hat, exact.rows[k].r_hat, 1e-9);
        if (!std::isfinite(exact.rows[k].r_hat)) EXPECT_EQ(std::isnan(rows[k].r_hat), std::isnan(exact.rows[k].r_hat));
      }
    }
  }
}

TEST(BatchCounts, EstimatesAreNear) {
  const std::vector<double> rates(200, 0.05);
  const std::vector<std::int8_t> x = moving(4, 8000, rates, 2);
  const DrawsView view{x.data(), 4, 8000, rates.size()};
  const VariablesSummary exact = summarize_variables(view);
  double ratios = 0.0;
  const auto rows = detail::estimated_rows(view, detail::BatchCuts(8000, 4), 0, rates.size());
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const double ratio = rows[k].ess / exact.rows[k].ess;
    EXPECT_GT(ratio, 0.3);
    EXPECT_LT(ratio, 3.5);
    ratios += std::log(ratio) / static_cast<double>(rows.size());
  }
  EXPECT_NEAR(ratios, 0.0, 0.2);
}

TEST(BatchCounts, LongRunsAreTheSameHoweverTheyAreHeld) {
  constexpr std::size_t kVariables = 1500, kDraws = 4001;
  std::vector<double> rates(kVariables, 0.5);
  rates[77] = 0.002;
  rates[1400] = 0.0;
  std::vector<std::int8_t> x = moving(4, kDraws, rates, 2);
  for (std::size_t k = 0; k < kDraws; ++k) x[k * kVariables + 5] = 0;  // one chain that disagrees
  const DrawsView view{x.data(), 4, kDraws, kVariables};
  ASSERT_GT(x.size(), values_at_every_lag);
  const VariablesSummary memory = summarize_variables(view, {.threads = 1});
  const VariablesSummary threads = summarize_variables(view, {.threads = 3});
  Columns columns(view);
  const VariablesSummary file = summarize_variables(columns, {.threads = 2});
  expect_same(memory.rows, threads.rows);
  expect_same(memory.rows, file.rows);
  const std::size_t fitting = values_at_every_lag / (4 * kDraws) / 4;
  EXPECT_LE(memory.exact, fitting);
  EXPECT_GE(memory.exact, fitting - 8);
  // The worst are not estimated, and what is wrong is seen.
  EXPECT_EQ(memory.worst_by_ess.front().is_estimate, false);
  EXPECT_TRUE(memory.worst_by_r_hat.front().variable == 5 || memory.worst_by_r_hat.front().variable == 1400);
  EXPECT_TRUE(std::any_of(memory.worst_by_ess.begin(), memory.worst_by_ess.end(),
                          [](const VariableRow& row) { return row.variable == 77; }));
  EXPECT_GE(memory.high_r_hat, 1U);
  EXPECT_LE(memory.high_r_hat, 3U);
}

TEST(BatchCounts, ALabelThatComesLateIsCounted) {
  std::vector<std::int8_t> x = moving(2, 3000, {0.5, 0.5}, 2);
  for (std::size_t k = 2500; k < 2550; ++k) x[k * 2] = 5;
  const DrawsView view{x.data(), 2, 3000, 2};
  const auto rows = detail::estimated_rows(view, detail::BatchCuts(3000, 2), 0, 2);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[2].level, 5);
  EXPECT_DOUBLE_EQ(rows[2].mean, 50.0 / 6000);
  EXPECT_FALSE(rows[3].level.has_value());
}

TEST(BatchCounts, ChanceExplainsWhatChanceMakes) {
  // Of independent draws none disagrees, whatever the number of series.
  const std::vector<std::int8_t> x = moving(8, 2000, std::vector<double>(2000, 0.1), 2);
  const auto rows = detail::estimated_rows({x.data(), 8, 2000, 2000}, detail::BatchCuts(2000, 8), 0, 2000);
  std::size_t high = 0;
  double least = 1.0;
  for (const VariableRow& row : rows) {
    high += row.r_hat > r_hat_limit ? 1 : 0;
    least = std::min(least, row.chance);
  }
  EXPECT_GT(high, 0U);
  EXPECT_GT(least * static_cast<double>(rows.size()), chance_limit);
}

}  // namespace poise::batch_counts_test
