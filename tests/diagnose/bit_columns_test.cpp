/// Variables of draws that are bits have the numbers of those that are bytes.
#include <poise/diagnose.hpp>

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <poise/extend/base/rng.hpp>
#include <poise/mmd.hpp>
#include <poise/trace.hpp>

namespace poise::bit_columns_test {

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void expect_same(std::size_t chains, std::size_t draws, Index variables, const std::vector<std::int8_t>& names) {
  Rng rng(7, 0);
  std::vector<std::int8_t> x(chains * draws * variables);
  for (std::size_t k = 0; k < x.size(); ++k) {
    const bool moves = k / variables % draws == 0 || rng.uniform() < (k % variables % 5 == 3 ? 0.0 : 0.2);
    x[k] = moves ? names[rng.uniform() < 0.4 ? 1 : 0] : x[k - variables];
    if (k % variables == 1) x[k] = names[1];
  }
  States states(variables, names[0], names[1]);
  states.append(x);
  const DrawsView bits = draws_view(states, chains, draws);
  ASSERT_NE(bits.bits, nullptr);
  const DrawsView bytes{x.data(), chains, draws, variables};
  EXPECT_EQ(evenly_spaced(bits, 10), evenly_spaced(bytes, 10));
  EXPECT_EQ(find_thinning(bits, {}).draws, find_thinning(bytes, {}).draws);
  const VariablesSummary a = summarize_variables(bits, {.threads = 2});
  const VariablesSummary b = summarize_variables(bytes);
  EXPECT_EQ(a.exact, b.exact);
  ASSERT_EQ(a.rows.size(), b.rows.size());
  for (std::size_t k = 0; k < a.rows.size(); ++k) {
    EXPECT_EQ(a.rows[k].variable, b.rows[k].variable);
    EXPECT_EQ(a.rows[k].level, b.rows[k].level);
    EXPECT_EQ(a.rows[k].status, b.rows[k].status);
    EXPECT_EQ(a.rows[k].transitions, b.rows[k].transitions);
    EXPECT_EQ(a.rows[k].is_estimate, b.rows[k].is_estimate);
    EXPECT_TRUE(same(a.rows[k].mean, b.rows[k].mean)) << k;
    EXPECT_TRUE(same(a.rows[k].mcse, b.rows[k].mcse)) << k;
    EXPECT_TRUE(same(a.rows[k].ess, b.rows[k].ess)) << k;
    EXPECT_TRUE(same(a.rows[k].r_hat, b.rows[k].r_hat)) << k;
    EXPECT_TRUE(same(a.rows[k].chance, b.rows[k].chance)) << k;
  }
}

TEST(BitColumns, RowsAreThoseOfBytes) {
  for (const Index variables : {1U, 7U, 8U, 9U, 63U, 65U, 130U}) {
    for (const std::size_t draws : {1, 2, 63, 64, 65, 300}) {
      expect_same(draws == 300 ? 1 : 3, draws, variables, {-1, 1});
      expect_same(2, draws, variables, {1, 0});
    }
  }
}

TEST(BitColumns, LongRunsAreThoseOfBytes) { expect_same(4, 4001, 1100, {0, 1}); }

}  // namespace poise::bit_columns_test
