/// The selection target: log odds against dense algebra, for every prior, and states that do not drift.
#include <gtest/gtest.h>

#include <cmath>

#include <poise/extend/kernels/gibbs.hpp>
#include "models/selection/selection_target.hpp"
#include "support/conformance.hpp"
#include "support/exactness.hpp"
#include "support/selection_cases.hpp"

namespace poise::selection_target_test {

using namespace poise::testing;

/// All states of p variables.
std::vector<std::vector<Value>> all_states(Index p) {
  std::vector<std::vector<Value>> states;
  for (std::size_t s = 0; s < (std::size_t{1} << p); ++s) {
    std::vector<Value>& x = states.emplace_back(p);
    for (Index j = 0; j < p; ++j) x[j] = static_cast<Value>(s >> j & 1);
  }
  return states;
}

TEST(SelectionTarget, LogOddsAreThoseOfEnumerationUnderEveryPrior) {
  for (const SelectionCase& one : selection_cases()) {
    SCOPED_TRACE(one.name);
    constexpr Index p = 9;
    const auto problem = make_case(one, p);
    const SelectionTarget target(problem->law);
    const SelectionOracle oracle(*problem, one.prior);
    const std::vector<std::vector<Value>> states = all_states(p);
    std::vector<double> truth;
    for (const auto& x : states) truth.push_back(oracle.log_prob(x));
    LineVector odds(lines_of(p));
    for (std::size_t s = 0; s < states.size(); ++s) {
      const SelectionTarget::State state = target.make_state(states[s]);
      if (truth[s] == kMinusInfinity) {
        EXPECT_EQ(target.log_prob(state), kMinusInfinity);
        continue;
      }
      ASSERT_NEAR(target.log_prob(state), truth[s], 1e-9) << s;
      target.all_log_odds(state, numbers_of(odds));
      for (Index j = 0; j < p; ++j) {
        const double with = truth[s | std::size_t{1} << j];
        const double without = truth[s & ~(std::size_t{1} << j)];
        const double wanted = with == kMinusInfinity      ? kMinusInfinity
                              : without == kMinusInfinity ? std::numeric_limits<double>::infinity()
                                                          : with - without;
        if (std::isinf(wanted)) {
          EXPECT_EQ(target.log_odds(state, j), wanted) << s << " " << j;
        } else {
          ASSERT_NEAR(target.log_odds(state, j), wanted, 1e-9) << s << " " << j;
          ASSERT_NEAR(numbers_of(odds)[j], wanted, 1e-9) << s << " " << j;
        }
      }
    }
  }
}

TEST(SelectionTarget, FifteenVariables) {
  constexpr Index p = 15;
  const auto problem = make_case({"default", {}}, p);
  const SelectionTarget target(problem->law);
  const SelectionOracle oracle(*problem, {});
  Rng rng(1, 1);
  SelectionTarget::State state = target.make_state(std::vector<Value>(p, 0));
  for (int step = 0; step < 300; ++step) {
    const auto j = static_cast<Index>(rng.uniform() * p);
    std::vector<Value> x = state.x;
    const double before = oracle.log_prob(x);
    x[j] ^= 1;
    ASSERT_NEAR(target.log_ratio(state, {j, x[j]}), oracle.log_prob(x) - before, 1e-9) << step;
    target.apply(state, {j, x[j]});
  }
}

TEST(SelectionTarget, Conforms) {
  for (const SelectionCase& one : selection_cases()) {
    SCOPED_TRACE(one.name);
    const auto problem = make_case(one, 8);
    std::vector<Value> start(8, 0);
    for (const Index j : problem->law->forced()) start[j] = 1;
    expect_conforms(SelectionTarget(problem->law), 60, start);
    expect_conforms(SelectionTarget(problem->law, 0.4), 30, start);
  }
}

TEST(SelectionTarget, KernelsAreExact) {
  for (const SelectionCase& one : selection_cases()) {
    // Gibbs of forced variables would start from a state that cannot be.
    if (!one.prior.always.empty() || !one.prior.inclusions.empty()) continue;
    // Without a ridge, five rows leave some sets of columns nearly dependent: odds are right to 1e-9, and no more.
    if (one.small_table && one.prior.slab == Slab::g) continue;
    SCOPED_TRACE(one.name);
    const auto problem = make_case(one, 6);
    const SelectionTarget target(problem->law);
    const StateSpace space = enumerate_states(target);
    for (const auto& [name, function] : all_balances()) {
      expect_reversible(InformedProposal<SelectionTarget>(function), target, space, name);
    }
    expect_invariant(target);
  }
}

TEST(SelectionTarget, ChangesDoNotDrift) {
  // Columns that are nearly the same, where rounding errors grow most.
  RegressionTable table = drawn_table(200, 30, 3, 10.0);
  const auto problem = regression_problem(std::move(table), Scaling::standard, {});
  const SelectionTarget target(problem->law);
  SelectionTarget::State state = target.make_state(std::vector<Value>(30, 0));
  Rng rng(2, 1);
  double worst = 0.0;
  for (int step = 0; step < 20000; ++step) {
    Index j = static_cast<Index>(rng.uniform() * 30);
    if (state.active.size() > 8) j = state.active[step % state.active.size()];
    target.apply(state, target.move_at(state, j));
    if (step % 500 != 499) continue;
    const SelectionTarget::State fresh = target.make_state(state.x);
    worst = std::max(worst, std::abs(target.log_prob(state) - target.log_prob(fresh)));
    for (Index k = 0; k < 30; ++k) {
      worst = std::max(worst, std::abs(target.log_odds(state, k) - target.log_odds(fresh, k)));
    }
  }
  EXPECT_LT(worst, 1e-9);
}

TEST(SelectionTarget, ThinSparseAndDenseProductsAgree) {
  const Index p = 21;
  const std::size_t n = 12;
  const RegressionTable table = drawn_table(n, p, 9);
  auto x = std::make_shared<ColumnTable>(n, p);
  for (Index j = 0; j < p; ++j) std::copy_n(table.x.data() + j * n, n, x->column(j).data());
  const ThinCrossProducts thin(x, p, 3000.0);
  DenseCrossProducts dense(p);
  SparseColumns columns;
  for (Index k = 0; k < p; ++k) {
    columns.start.push_back(columns.rows.size());
    for (Index j = 0; j < p; ++j) {
      double sum = 0.0;
      for (std::size_t i = 0; i < n; ++i) sum += table.x[j * n + i] * table.x[k * n + i];
      dense.row(k)[j] = sum;
      // Blocks of seven.
      if (j / 7 != k / 7) continue;
      columns.rows.push_back(j);
      columns.values.push_back(static_cast<float>(sum));
    }
  }
  columns.start.push_back(columns.rows.size());
  dense.finish();
  const SparseCrossProducts sparse(columns, 2.0, 1000.0);
  for (int pass = 0; pass < 2; ++pass) {
    for (Index k = 0; k < p; ++k) {
      const CrossColumn of_thin = thin.column(k);
      const CrossColumn of_sparse = sparse.column(k);
      for (Index j = 0; j < p; ++j) {
        EXPECT_NEAR(of_thin.at(j), dense.column(k).at(j), 1e-9);
        const double block = j / 7 == k / 7 ? 2.0 * dense.column(k).at(j) : 0.0;
        EXPECT_NEAR(of_sparse.at(j), block, 1e-4);
      }
    }
  }
}

/// Columns with zeros that are not stored take another loop than whole ones.
TEST(SelectionTarget, BlocksOfCorrelationsGiveTheSameOdds) {
  const Index p = 40;
  SummaryTable table;
  SymmetricMatrix dense;
  SparseColumns sparse;
  Rng rng(4, 1);
  for (Index k = 0; k < p; ++k) {
    table.names.push_back("v" + std::to_string(k));
    table.z.push_back(3.0 * rng.normal());
    sparse.start.push_back(sparse.rows.size());
    for (Index j = 0; j < p; ++j) {
      const double r = j / 10 == k / 10 ? std::pow(0.75, std::abs(static_cast<double>(j) - k)) : 0.0;
      const auto stored = static_cast<double>(static_cast<float>(r));
      dense.dense.push_back(stored);
      if (r == 0.0) continue;
      sparse.rows.push_back(j);
      sparse.values.push_back(static_cast<float>(r));
    }
  }
  sparse.start.push_back(sparse.rows.size());
  table.n = 1000;
  const auto law = summary_problem(table, dense, {})->law;
  SelectionData data{
      std::make_shared<SparseCrossProducts>(sparse, 999.0, 1e6), law->xty(), law->yty(), law->observations(), {}};
  const SelectionTarget whole(law);
  const SelectionTarget blocks(std::make_shared<const SelectionLaw>(std::move(data), SelectionPrior{}, table.names));
  auto a = whole.make_state(std::vector<Value>(p, 0));
  auto b = blocks.make_state(std::vector<Value>(p, 0));
  for (int step = 0; step < 200; ++step) {
    const auto j = static_cast<Index>(rng.uniform() * p);
    whole.apply(a, whole.move_at(a, j));
    blocks.apply(b, blocks.move_at(b, j));
    ASSERT_NEAR(whole.log_prob(a), blocks.log_prob(b), 1e-8);
    for (Index k = 0; k < p; ++k) ASSERT_NEAR(whole.log_odds(a, k), blocks.log_odds(b, k), 1e-8);
  }
}

}  // namespace poise::selection_target_test
