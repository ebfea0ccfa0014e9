/// Exactness: the whole transition matrix of every kernel on enumerable targets; and the step against it.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "support/enumerate.hpp"
#include "support/exactness.hpp"
#include "support/faults.hpp"
#include "support/small_targets.hpp"

namespace poise::kernel_test {

using namespace poise::testing;

TEST(Exactness, LocallyBalancedOnTorus) { expect_detailed_balance(small_torus()); }
TEST(Exactness, LocallyBalancedOnOpenLattice) { expect_detailed_balance(small_open()); }
TEST(Exactness, LocallyBalancedOnLine) { expect_detailed_balance(small_line()); }
TEST(Exactness, LocallyBalancedOnGraph) { expect_detailed_balance(small_graph()); }
TEST(Exactness, LocallyBalancedOnCategorical) { expect_detailed_balance(small_categorical()); }
TEST(Exactness, LocallyBalancedWithZeros) { expect_detailed_balance(small_with_zeros()); }
TEST(Exactness, LocallyBalancedWithSteepRatios) {
  expect_detailed_balance(LatticeIsing(2, 3, Boundary::open, 20.0, random_field(6, 30.0, 8)));
}

TEST(Exactness, GibbsOnTorus) { expect_invariant(small_torus()); }
TEST(Exactness, GibbsOnGraph) { expect_invariant(small_graph()); }
TEST(Exactness, GibbsOnCategorical) { expect_invariant(small_categorical()); }
TEST(Exactness, GibbsWithZeros) { expect_invariant(small_with_zeros()); }

TEST(PlainKernel, MakesTheSameChain) {
  for (const auto& [name, balance] : all_balances()) {
    SCOPED_TRACE(name);
    expect_same_chain(small_torus(), balance, 2000);
    expect_same_chain(small_open(), balance, 2000);
    expect_same_chain(small_graph(), balance, 2000);
    const LatticeIsing lattice(30, 30, Boundary::torus, 1.0, random_field(900, 3.0, 1));
    expect_same_chain(lattice, balance, 1000);
    expect_same_chain(lattice, balance, 1000, true);
    expect_same_chain(small_open(), balance, 2000, true);
  }
  expect_same_chain(small_categorical(), BalancingFunction(), 1000);
}

// Fields of +-5000 make log ratios of +-10^4: sums of weights leave the range of doubles again and again.
TEST(Range, HugeLogRatiosNeitherOverflowNorFreeze) {
  for (const auto& [name, balance] : all_balances()) {
    SCOPED_TRACE(name);
    const LatticeIsing target(12, 12, Boundary::torus, 1.0, random_field(144, 5000.0, 3));
    LocallyBalanced<LatticeIsing> kernel(balance);
    kernel.tabulate(target);  // must decline
    Rng start(1, 2), rng(1, 3);
    Levels x(144);
    for (Value& level : x) level = start.uniform() < 0.5 ? 1 : 0;
    auto state = target.make_state(x);
    LocallyBalanced<LatticeIsing>::Scratch scratch(target);
    kernel.prepare(target, state, scratch);
    for (int step = 0; step < 2000; ++step) {
      const StepInfo info = kernel.step(target, state, scratch, rng);
      ASSERT_TRUE(info.accept_prob >= 0.0 && info.accept_prob <= 1.0);
      ASSERT_TRUE(std::isfinite(scratch.tree.total()) && scratch.tree.total() > 0.0);
    }
    // All spins must have found their fields: the mode is reached and held, but for the weakest ones.
    double best = 0.0;
    for (Index i = 0; i < target.num_variables(); ++i) best += std::abs(target.field(i));
    if (name != "max" && name != "mlp" && name != "monotone" && name != "mixture") {
      EXPECT_GT(target.log_prob(state), best - 2000.0);
    }
  }
}

// Nearly all weight is on three moves, and one of them sends all three from e^1000 to e^-1000: what is left of their
// sum is rounding, far above the true one.
TEST(Range, WeightsThatCancelDoNotFreezeTheChain) {
  const GraphIsing target({999.8656357558876, 0.8474337369372327, 0.763774618976614, 0.3},
                          std::vector<Edge>{{0, 1, 1000.0}, {0, 2, 1000.0}});
  for (std::uint64_t stream = 0; stream < 20; ++stream) {
    const LocallyBalanced<GraphIsing> kernel{BalancingFunction()};
    auto state = target.make_state(Levels{1, 0, 0, 0});
    LocallyBalanced<GraphIsing>::Scratch scratch(target);
    kernel.prepare(target, state, scratch);
    Rng rng(1, stream);
    for (int step = 0; step < 100; ++step) {
      kernel.step(target, state, scratch, rng);
      ASSERT_GT(scratch.tree.total(), 0.0) << "stream " << stream << " step " << step;
    }
    int moved = 0;
    for (int step = 0; step < 200; ++step) moved += kernel.step(target, state, scratch, rng).accepted ? 1 : 0;
    EXPECT_GT(moved, 20) << "stream " << stream;  // variable 4 is free
  }
}

// Strong couplings: every look at a move overflows the offset, and must agree with the sum over all moves.
TEST(Range, OverflowingProposalsAreExact) {
  const LatticeIsing target(4, 4, Boundary::torus, 400.0, random_field(16, 300.0, 3));
  for (const auto& [name, balance] : all_balances()) {
    SCOPED_TRACE(name);
    expect_same_chain(target, balance, 500);
  }
}

TEST(Range, AConstantAddedToLogPChangesNothing) {
  std::vector<double> log_p(64);
  Rng rng(2, 2);
  for (double& value : log_p) value = std::round(rng.uniform() * 4096) / 1024;  // exact sums
  std::vector<double> shifted = log_p;
  for (double& value : shifted) value -= 1048576.0;
  const TableTarget a({2, 2, 2, 2, 2, 2}, log_p), b({2, 2, 2, 2, 2, 2}, shifted);
  const LocallyBalanced<TableTarget> kernel{BalancingFunction()};
  auto sa = a.make_state(Levels(6, 0)), sb = b.make_state(Levels(6, 0));
  LocallyBalanced<TableTarget>::Scratch ca(a), cb(b);
  kernel.prepare(a, sa, ca);
  kernel.prepare(b, sb, cb);
  Rng ra(3, 3), rb(3, 3);
  for (int step = 0; step < 5000; ++step) {
    kernel.step(a, sa, ca, ra);
    kernel.step(b, sb, cb, rb);
    ASSERT_EQ(sa.x, sb.x);
  }
}

TEST(Range, IllegalNumbersAreErrorsWhereverTheyAre) {
  for (const double illegal : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (const std::size_t where : {0U, 1U, 3U, 7U}) {  // the start, and one, two and three flips from it
      const TableTarget binary = flat_but_for({2, 2, 2}, where, illegal);
      const TableTarget ternary = flat_but_for({3, 3, 2}, where, illegal);
      for (const auto& [name, balance] : all_balances()) {
        EXPECT_TRUE(finds_fault(binary, LocallyBalanced<TableTarget>(balance))) << name << " " << where << illegal;
        EXPECT_TRUE(finds_fault(binary, PlainBalanced<TableTarget>(balance))) << name << " " << where << illegal;
      }
      EXPECT_TRUE(finds_fault(binary, Gibbs<TableTarget>())) << where << illegal;
      EXPECT_TRUE(finds_fault(ternary, Gibbs<TableTarget>())) << where << illegal;
    }
  }
}

TEST(Range, ZerosAreNoFault) {
  for (const std::size_t where : {1U, 3U, 7U}) {
    const TableTarget target = flat_but_for({2, 2, 2}, where, -std::numeric_limits<double>::infinity());
    for (const auto& [name, balance] : all_balances()) {
      EXPECT_FALSE(finds_fault(target, LocallyBalanced<TableTarget>(balance))) << name << " " << where;
      EXPECT_FALSE(finds_fault(target, PlainBalanced<TableTarget>(balance))) << name << " " << where;
    }
    EXPECT_FALSE(finds_fault(target, Gibbs<TableTarget>())) << where;
  }
}

// No single change leads anywhere: the chain stays, and nothing divides by the total of zero.
TEST(Range, AnIsolatedStateIsKept) {
  std::vector<double> log_p(8, -std::numeric_limits<double>::infinity());
  log_p[0] = log_p[7] = 0.0;
  const TableTarget target({2, 2, 2}, log_p);
  for (const auto& [name, balance] : all_balances()) {
    SCOPED_TRACE(name);
    expect_stays(target, LocallyBalanced<TableTarget>(balance));
    expect_stays(target, PlainBalanced<TableTarget>(balance));
  }
  expect_stays(target, Gibbs<TableTarget>());
}

// A weight that underflows and one that overflows in turn: Z(x') is then summed over all moves in the log domain.
TEST(Range, TotalsOutOfRangeAreExactOnAGraph) {
  std::vector<Edge> edges;
  for (Index i = 0; i + 1 < 8; ++i) edges.push_back({i, i + 1, i % 2 == 0 ? 500.0 : -420.0});
  const GraphIsing target(random_field(8, 900.0, 3), edges);
  for (const auto& [name, balance] : all_balances()) {
    SCOPED_TRACE(name);
    expect_same_chain(target, balance, 500);
  }
}

TEST(Law, StepsKeepTheLaw) {
  for (const auto& [name, balance] : all_balances()) {
    LocallyBalanced<LatticeIsing> kernel(balance);
    expect_law_kept(small_torus(), kernel, 7, name);
    kernel.tabulate(small_torus());
    expect_law_kept(small_torus(), kernel, 7, name);
    expect_law_kept(small_categorical(), LocallyBalanced<TableTarget>(balance), 5, name);
    expect_law_kept(small_graph(), LocallyBalanced<GraphIsing>(balance), 7, name);
  }
  expect_law_kept(small_torus(), Gibbs<LatticeIsing>(), 2);
  expect_law_kept(small_with_zeros(), Gibbs<TableTarget>(), 2);
}

/// The same kernel with its accept step removed.
struct AlwaysAccepts {
  using Inner = LocallyBalanced<LatticeIsing>;
  using Scratch = Inner::Scratch;
  Inner inner;
  void prepare(const LatticeIsing& t, const LatticeIsing::State& s, Scratch& scratch) const {
    inner.prepare(t, s, scratch);
  }
  StepInfo step(const LatticeIsing& t, LatticeIsing::State& s, Scratch& scratch, Rng& rng) const {
    const Index m = scratch.tree.select(rng.uniform() * scratch.tree.total());
    t.apply(s, t.move_at(s, m));
    inner.prepare(t, s, scratch);
    return {1.0, true, 1};
  }
};

TEST(Law, StatesThatAreRareAreNoCellOfTheirOwn) {
  StateSpace space;
  space.states = {{0}, {1}, {2}};
  space.probabilities = {0.5, 0.5 - 5e-7, 5e-7};
  const std::vector<double> one_rare_visit = {10000, 9999, 1};
  EXPECT_LT(chi_square_z(one_rare_visit, space), 1.0);
  space.probabilities = {5e-7, 0.0, 1.0 - 5e-7};
  const std::vector<double> one_cell = {0, 0, 20000};
  EXPECT_EQ(chi_square_z(one_cell, space), 0.0);
}

TEST(Law, TheTestSeesAMissingAcceptStep) {
  EXPECT_GT(law_z(AlwaysAccepts{}, small_torus(), enumerate_states(small_torus())), 10.0);
  EXPECT_FALSE(check_kernel("always accepts", AlwaysAccepts{}, small_torus()).ok());
}

}  // namespace poise::kernel_test
