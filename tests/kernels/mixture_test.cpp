/// What is mixed into kernels so that no chain is caught: rests, where every change is accepted, and local steps, where
/// proposals of many changes lead nowhere.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <type_traits>

#include <poise/extend/kernels/factorised_proposal.hpp>
#include <poise/extend/kernels/informed_proposal.hpp>
#include <poise/extend/kernels/locally_balanced.hpp>
#include <poise/extend/kernels/path_proposal.hpp>
#include <poise/run.hpp>
#include "engines/cpu/chains/bonds.hpp"
#include "kernels/cluster_kernels.hpp"
#include "models/network/markov_network.hpp"
#include "support/many_exactness.hpp"
#include "support/rough_target.hpp"
#include "support/small_rbms.hpp"
#include "support/small_targets.hpp"
#include "support/steps.hpp"

namespace poise::mixture_test {

using namespace poise::testing;

template <class T>
void expect_single_changes(const T& target, Ratios ratios) {
  const StateSpace space = enumerate_states(target);
  const auto check = [&](const auto& kernel) {
    const TransitionMatrix matrix = transition_matrix(kernel, target, space);
    expect_reversible_steps(target, kernel, space, with_rests(matrix, target.num_moves()));
  };
  if constexpr (SparseTarget<T>) check(LocallyBalanced<T>());
  check(InformedProposal<T>(BalancingFunction(), ratios));
}

template <class T>
void expect_many_changes(const T& target, Ratios ratios) {
  const StateSpace space = enumerate_states(target);
  for (const FactorisedForm form : kForms) {
    for (const double level : {-1.0, 1.5}) {
      const FactorisedProposal<T> kernel(form, BalancingFunction(BalancingFunction::Kind::sqrt, level), ratios);
      const TransitionMatrix matrix = whole_matrix(kernel, target, space);
      expect_reversible_steps(target, kernel, space, with_local_steps(matrix, target, space));
    }
  }
  const PathProposal<T> paths(at_level(BalancingFunction(), std::log(2.0)), ratios);
  const TransitionMatrix matrix = with_rests(path_matrix(paths, target, space), target.num_moves());
  expect_reversible_steps(target, paths, space, with_local_steps(matrix, target, space));
}

TEST(Exactness, OfStepsThatRest) {
  expect_single_changes(LatticeIsing(2, 3, Boundary::open, 0.3, random_field(6, 1.0, 2)), Ratios::exact);
  expect_single_changes(small_with_zeros(), Ratios::exact);
  expect_single_changes(Rbm(random_rbm(5, 4, 1.2, 1)), Ratios::first_order);
}

TEST(Exactness, OfStepsWithLocalOnesAmongThem) {
  expect_many_changes(LatticeIsing(2, 3, Boundary::open, 0.3, random_field(6, 1.0, 2)), Ratios::exact);
  expect_many_changes(TableTarget::random({3, 2, 3, 2}, 2.0, 5), Ratios::exact);
  expect_many_changes(RoughTarget(TableTarget::random({2, 3, 2, 2}, 2.0, 6, 8)), Ratios::first_order);
  expect_many_changes(Rbm(random_rbm(5, 4, 2.0, 1)), Ratios::first_order);
}

/// A local step tries several single changes where there are enough variables.
TEST(Exactness, OfLocalStepsOfSeveralChanges) {
  // Thirty-two variables of which all but five have one level.
  std::vector<Index> cardinalities(32, 1);
  for (const Index i : {0U, 7U, 8U, 20U, 31U}) cardinalities[i] = i == 8 ? 3 : 2;
  const TableTarget target = TableTarget::random(cardinalities, 2.0, 5);
  ASSERT_EQ(local_changes(target), 2U);
  expect_many_changes(target, Ratios::exact);
}

/// log p of two binary variables that gain 2 J by being alike, and a free one.
TableTarget dimer(double coupling) {
  std::vector<double> log_p(8);
  for (std::size_t s = 0; s < 8; ++s) {
    log_p[s] = ((s & 1U) == (s >> 1 & 1U) ? coupling : -coupling) + (s > 3 ? 0.7 : -0.7);
  }
  return {{2, 2, 2}, log_p};
}

/// Steps until a chain from a state has come to another one of at least this log p.
template <class T, class K>
int steps_until(const T& target, const K& kernel, const Levels& from, double log_prob, std::uint64_t stream) {
  auto state = target.make_state(from);
  typename K::Scratch scratch(target);
  kernel.prepare(target, state, scratch);
  Rng rng(11, stream);
  int steps = 0;
  while (target.log_prob(state) < log_prob && steps < 100000) {
    kernel.step(target, state, scratch, rng);
    ++steps;
  }
  return steps;
}

/// Two variables that disagree would both change at every step, however strongly they are coupled.
TEST(Traps, VariablesThatChaseEachOtherMeet) {
  for (const double coupling : {4.0, 6.0, 12.0, 30.0, 500.0}) {
    const TableTarget target = dimer(coupling);
    for (const FactorisedForm form : kForms) {
      for (const double level : {-3.0, 0.0, 5.0}) {
        const FactorisedProposal<TableTarget> kernel(form, BalancingFunction(BalancingFunction::Kind::sqrt, level));
        int sum = 0;
        for (std::uint64_t stream = 0; stream < 50; ++stream) {
          sum += steps_until(target, kernel, {0, 1, 0}, coupling - 1.0, stream);
        }
        // Geometric, with a mean of 28 at most.
        EXPECT_LT(sum, 50 * 28 + 6 * std::sqrt(50.0) * 28) << coupling << " " << level;
      }
    }
  }
}

/// Every variable alone may change for the better, and any two together must not.
TEST(Traps, VariablesThatExcludeEachOtherAreTriedOneByOne) {
  std::vector<double> log_p(1U << 10);
  for (std::size_t s = 0; s < log_p.size(); ++s) {
    const int on = std::popcount(s);
    log_p[s] = on == 0 ? 0.0 : 60.0 - 1000.0 * (on - 1);
  }
  const TableTarget target(std::vector<Index>(10, 2), log_p);
  for (const FactorisedForm form : kForms) {
    const FactorisedProposal<TableTarget> kernel(form, BalancingFunction());
    for (std::uint64_t stream = 0; stream < 20; ++stream) {
      EXPECT_LT(steps_until(target, kernel, Levels(10, 0), 60.0, stream), 32 * 20);
    }
  }
}

/// A unit that is as likely on as off, but whose gradient points back on either side.
TEST(Traps, GradientsThatAreFarOffDoNotHoldAVariable) {
  RbmWeights weights;
  weights.visible = 2;
  weights.hidden = 1;
  weights.weights = {60.0F, 0.0F};
  weights.visible_bias = {-30.0F, 0.0F};
  weights.hidden_bias = {-30.0F};
  const Rbm target(weights);
  const auto check = [&](const auto& kernel) {
    auto state = target.make_state(Levels{0, 0});
    typename std::remove_cvref_t<decltype(kernel)>::Scratch scratch(target);
    kernel.prepare(target, state, scratch);
    Rng rng(3, 1);
    int on = 0;
    constexpr int kSteps = 100000;
    for (int step = 0; step < kSteps; ++step) {
      kernel.step(target, state, scratch, rng);
      on += state.x[0];
    }
    // It changes at one step in 64, so the mean has an effective sample of a 64th of the steps.
    EXPECT_NEAR(on / static_cast<double>(kSteps), 0.5, 6.0 * 0.5 / std::sqrt(kSteps / 64.0));
  };
  for (const FactorisedForm form : kForms) {
    check(FactorisedProposal<Rbm>(form, BalancingFunction(), Ratios::first_order));
  }
  check(PathProposal<Rbm>(at_level(BalancingFunction(), std::log(2.0)), Ratios::first_order));
}

/// Log ratios whose exponentials are no doubles.
TEST(Range, PathsLeaveStatesOfLittleProbability) {
  for (const double steep : {700.0, 1500.0, 1e5}) {
    std::vector<double> log_p(16);
    for (std::size_t s = 0; s < 16; ++s) log_p[s] = steep * std::popcount(s) - (s == 5 ? 0.5 * steep : 0.0);
    const TableTarget target({2, 2, 2, 2}, log_p);
    for (const Index radius : {1U, 2U, 8U}) {
      const PathProposal<TableTarget> kernel(at_level(BalancingFunction(), std::log(radius)));
      EXPECT_LT(steps_until(target, kernel, Levels(4, 0), 4 * steep, 1), 200) << steep << " " << radius;
    }
  }
}

TEST(Range, SoDoManyLevels) {
  std::vector<double> log_p(16);
  for (std::size_t s = 0; s < 16; ++s) log_p[s] = 1200.0 * static_cast<double>(s % 4 + (s >> 2));
  const TableTarget target({4, 4}, log_p);
  for (const FactorisedForm form : kForms) {
    const FactorisedProposal<TableTarget> kernel(form, BalancingFunction());
    const StateSpace space = enumerate_states(target);
    const auto state = target.make_state(Levels{0, 0});
    FactorisedProposal<TableTarget>::Scratch scratch(target);
    kernel.prepare(target, state, scratch);
    EXPECT_GT(kernel.evaluate(target, state, scratch, Levels{3, 3}).accept_prob, 0.9);
  }
}

/// How often an even number of variables is up, at draws so many steps apart.
template <class T, class K>
double even_share(const T& target, const K& kernel, Index steps, int draws) {
  auto state = target.make_state(Levels(target.num_variables(), 0));
  typename K::Scratch scratch(target);
  kernel.prepare(target, state, scratch);
  Rng rng(7, 1);
  int even = 0;
  for (int draw = 0; draw < draws; ++draw) {
    for (Index step = 0; step < steps; ++step) kernel.step(target, state, scratch, rng);
    int up = 0;
    for (Index i = 0; i < target.num_variables(); ++i) up += target.level(state, i);
    even += up % 2 == 0 ? 1 : 0;
  }
  return even / static_cast<double>(draws);
}

/// Where p is flat every change is accepted, and still draws a sweep apart are even and odd.
TEST(Parity, OfDrawsASweepApartIsNotThatOfSteps) {
  constexpr int kDraws = 20000;
  // Parities of draws have an autocorrelation of at most e^-2, so a variance of 1/4 times (1 + e^-2) / (1 - e^-2).
  const double error = 0.5 * std::sqrt(1.32 / kDraws);
  for (const Index n : {1U, 2U, 9U, 10U}) {
    const LatticeIsing flat(1, n, Boundary::open, 0.0, std::vector<double>(n, 0.0));
    EXPECT_NEAR(even_share(flat, LocallyBalanced<LatticeIsing>(), n, kDraws), 0.5, 6.0 * error) << n;
    EXPECT_NEAR(even_share(flat, InformedProposal<LatticeIsing>(BalancingFunction()), n, kDraws), 0.5, 6.0 * error);
    EXPECT_NEAR(even_share(flat, PathProposal<LatticeIsing>(BalancingFunction()), n, kDraws), 0.5, 6.0 * error) << n;
    if (n > 1) {
      EXPECT_NEAR(even_share(flat, Wolff<LatticeIsing>(bond_graph(flat), n), 1, kDraws), 0.5, 6.0 * error) << n;
    }
  }
}

/// What is not proposed is not accepted, and does not make steps longer.
TEST(Tuning, OfChainsThatHardlyMoveGoesByTheirChanges) {
  RunOptions options;
  options.start = Start::zeros;
  options.draws = 10000;
  options.thin = 1;
  const RunResult result =
      run(make_model("potts:size=2x1,levels=4,coupling=3,field=-1"), parse_sampler("dlmc"), options);
  double accepted = 0.0;
  std::size_t changes = 0;
  const States& x = result.trace.x;
  for (std::size_t k = 0; k < result.trace.acceptance_rate.size(); ++k) {
    accepted += result.trace.acceptance_rate[k];
    if (k % result.trace.draws > 0 && (x[2 * k] != x[2 * k - 2] || x[2 * k + 1] != x[2 * k - 1])) ++changes;
  }
  EXPECT_GT(changes, 100U);
  EXPECT_NEAR(accepted, static_cast<double>(changes), 6.0 * std::sqrt(accepted) + 1.0);
}

}  // namespace poise::mixture_test
