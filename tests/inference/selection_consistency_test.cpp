/// Whether z scores, correlations and n belong together: what is named, and that sound data are not.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "inference/select/selection_parts.hpp"
#include "support/selection_cases.hpp"

namespace poise::selection_consistency_test {

using namespace poise::testing;

struct Locus {
  std::vector<double> z;
  std::vector<double> r;  // by rows
  double n = 0.0;
};

/// Columns with neighbours correlated by `rho`, two of which have effects of the size of the residuals.
Locus drawn_locus(std::size_t n, std::size_t p, double rho, std::uint64_t seed) {
  Rng rng(seed, 1);
  std::vector<std::vector<double>> x(p, std::vector<double>(n));
  std::vector<double> y(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < p; ++j) {
      x[j][i] = j == 0 ? rng.normal() : rho * x[j - 1][i] + std::sqrt(1.0 - rho * rho) * rng.normal();
    }
    y[i] = x[p / 3][i] - 0.8 * x[2 * p / 3][i] + rng.normal();
  }
  const auto standardise = [n](std::vector<double>& column) {
    double mean = 0.0;
    double square = 0.0;
    for (const double value : column) mean += value / static_cast<double>(n);
    for (double& value : column) square += (value - mean) * (value - mean);
    for (double& value : column) value = (value - mean) / std::sqrt(square);
  };
  for (std::vector<double>& column : x) standardise(column);
  standardise(y);
  const auto product = [n](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
  };
  Locus out;
  out.n = static_cast<double>(n);
  for (std::size_t j = 0; j < p; ++j) {
    const double c = product(x[j], y);
    out.z.push_back(c * std::sqrt((out.n - 2.0) / (1.0 - c * c)));
    for (std::size_t k = 0; k < p; ++k) out.r.push_back(j == k ? 1.0 : product(x[j], x[k]));
  }
  return out;
}

std::vector<Warning> warnings_of(const Locus& locus, std::optional<double> n) {
  SummaryTable table;
  for (std::size_t j = 0; j < locus.z.size(); ++j) table.names.push_back("rs" + std::to_string(j));
  table.z = locus.z;
  table.n = n;
  SymmetricMatrix matrix;
  matrix.dense = locus.r;
  std::vector<Warning> warnings;
  add_inconsistencies(*summary_problem(table, matrix, {}), warnings);
  return warnings;
}

TEST(SelectionConsistency, StrongSignalsAreNoReasonToWarn) {
  for (const double rho : {0.0, 0.5, 0.95}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      for (const std::size_t n : {300U, 2000U}) {
        const Locus locus = drawn_locus(n, 20 + 5 * seed, rho, seed);
        const std::vector<Warning> warnings = warnings_of(locus, locus.n);
        EXPECT_TRUE(warnings.empty()) << rho << " " << seed << " " << n << ": " << warnings[0].text;
      }
    }
  }
  EXPECT_TRUE(warnings_of({{20.0, 10.0}, {1.0, 0.5, 0.5, 1.0}, 0.0}, 50000.0).empty());
}

TEST(SelectionConsistency, FlippedAllelesAreNamedAlone) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Locus locus = drawn_locus(500, 40, 0.95, seed);
    for (const std::size_t j : {11U, 29U}) locus.z[j] = -locus.z[j];
    const std::vector<Warning> warnings = warnings_of(locus, locus.n);
    ASSERT_EQ(warnings.size(), 1U) << seed;
    EXPECT_EQ(warnings[0].code, "flipped");
    EXPECT_NE(warnings[0].text.find("2 variants"), std::string::npos) << warnings[0].text;
    EXPECT_NE(warnings[0].text.find("rs11 "), std::string::npos) << warnings[0].text;
    EXPECT_NE(warnings[0].text.find("rs29 "), std::string::npos) << warnings[0].text;
  }
}

TEST(SelectionConsistency, AWrongSampleSizeIsFoundWhereSignalsAreStrong) {
  const Locus locus = drawn_locus(500, 60, 0.97, 3);
  const std::vector<Warning> warnings = warnings_of(locus, 0.1 * locus.n);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].code, "sample_size");
  EXPECT_NE(warnings[0].text.find("about 500 fits"), std::string::npos) << warnings[0].text;
}

TEST(SelectionConsistency, CorrelationsOfOtherDataAreFound) {
  Locus locus = drawn_locus(2000, 40, 0.5, 1);
  locus.r = drawn_locus(60, 40, 0.5, 2).r;
  const std::vector<Warning> warnings = warnings_of(locus, locus.n);
  ASSERT_FALSE(warnings.empty());
  EXPECT_EQ(warnings.back().code, "inconsistent");
}

TEST(SelectionConsistency, ManyVariantsAreLookedAtWhereSignalsAre) {
  // Blocks of ten with correlations 0.9^distance, more variants than are factored.
  constexpr std::size_t kBlocks = 310;
  constexpr std::size_t kBlock = 10;
  Rng rng(5, 1);
  SummaryTable table;
  table.n = 1e6;
  SymmetricMatrix matrix;
  matrix.column_start = {0};
  for (std::size_t block = 0; block < kBlocks; ++block) {
    for (std::size_t k = 0; k < kBlock; ++k) {
      const std::size_t j = block * kBlock + k;
      table.names.push_back("rs" + std::to_string(j));
      table.z.push_back(k == 0 ? rng.normal() : 0.9 * table.z.back() + std::sqrt(0.19) * rng.normal());
      for (std::size_t i = 0; i < kBlock; ++i) {
        matrix.rows.push_back(static_cast<std::uint32_t>(block * kBlock + i));
        matrix.values.push_back(
            static_cast<float>(std::pow(0.9, std::abs(static_cast<double>(i) - static_cast<double>(k)))));
      }
      matrix.column_start.push_back(matrix.rows.size());
    }
  }
  for (std::size_t k = 0; k < kBlock; ++k)
    table.z[2000 + k] += 12.0 * std::pow(0.9, std::abs(4.0 - static_cast<double>(k)));
  const auto warnings_of_all = [&] {
    std::vector<Warning> warnings;
    add_inconsistencies(*summary_problem(table, matrix, {}), warnings);
    return warnings;
  };
  EXPECT_TRUE(warnings_of_all().empty());
  table.z[2006] = -table.z[2006];
  const std::vector<Warning> warnings = warnings_of_all();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].text.find("rs2006 "), std::string::npos) << warnings[0].text;
  // Correlations that were cut off where they are not small.
  for (std::size_t e = 0; e < matrix.values.size(); ++e) {
    if (matrix.values[e] < 0.75F) matrix.values[e] = 0.0F;
  }
  EXPECT_EQ(warnings_of_all()[0].code, "correlations");
}

TEST(SelectionConsistency, SparseMatricesThatNoDataHaveAreShrunk) {
  SummaryTable table;
  table.names = {"a", "b", "c"};
  table.z = {5.0, 4.0, 1.0};
  table.n = 1000;
  SymmetricMatrix matrix;  // 0.9 between neighbours, and nothing beyond
  matrix.column_start = {0, 2, 5, 7};
  matrix.rows = {0, 1, 0, 1, 2, 1, 2};
  matrix.values = {1.0F, 0.9F, 0.9F, 1.0F, 0.9F, 0.9F, 1.0F};
  const auto problem = summary_problem(table, matrix, {});
  ASSERT_EQ(problem->doubts.size(), 1U);
  EXPECT_LT(problem->correlation(0, 1), 0.72);
}

}  // namespace poise::selection_consistency_test
