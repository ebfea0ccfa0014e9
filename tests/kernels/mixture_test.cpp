/// What is mixed into kernels so that no chain is caught: rests, where every change is accepted.
#include <gtest/gtest.h>

#include <cmath>

#include <poise/extend/kernels/informed_proposal.hpp>
#include <poise/extend/kernels/locally_balanced.hpp>
#include "engines/cpu/chains/bonds.hpp"
#include "kernels/cluster_kernels.hpp"
#include "support/small_rbms.hpp"
#include "support/small_targets.hpp"
#include "support/steps.hpp"

namespace poise {
namespace {

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

TEST(Exactness, OfStepsThatRest) {
  expect_single_changes(LatticeIsing(2, 3, Boundary::open, 0.3, random_field(6, 1.0, 2)), Ratios::exact);
  expect_single_changes(small_with_zeros(), Ratios::exact);
  expect_single_changes(Rbm(random_rbm(5, 4, 1.2, 1)), Ratios::first_order);
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
    if (n > 1) {
      EXPECT_NEAR(even_share(flat, Wolff<LatticeIsing>(bond_graph(flat), n), 1, kDraws), 0.5, 6.0 * error) << n;
    }
  }
}

}  // namespace
}  // namespace poise
