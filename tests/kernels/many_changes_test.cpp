/// Kernels that change many variables a step: their transition matrices, their law, and what they must refuse.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>

#include <poise/extend/kernels/factorised_proposal.hpp>
#include <poise/extend/kernels/path_proposal.hpp>
#include "models/network/markov_network.hpp"
#include "models/user/batch_target.hpp"
#include "support/exactness.hpp"
#include "support/faults.hpp"
#include "support/many_exactness.hpp"
#include "support/rough_target.hpp"
#include "support/small_networks.hpp"
#include "support/small_rbms.hpp"
#include "support/small_targets.hpp"

namespace poise::many_changes_test {

using namespace poise::testing;

Rbm small_rbm() { return Rbm(random_rbm(6, 4, 1.2, 1)); }
Rbm steep_rbm() { return Rbm(random_rbm(5, 11, 8.0, 2)); }
RoughTarget rough_categorical() { return RoughTarget(TableTarget::random({3, 2, 1, 3, 2}, 3.0, 5)); }
RoughTarget rough_zeros() { return RoughTarget(TableTarget::random({2, 3, 2, 3}, 2.0, 6, 8)); }

TEST(Exactness, FactorisedOnLattices) {
  expect_factorised_balance(LatticeIsing(2, 3, Boundary::open, -0.8, random_field(6, 2.0, 2)), Ratios::exact);
  expect_factorised_balance(LatticeIsing(2, 3, Boundary::open, 20.0, random_field(6, 30.0, 8)), Ratios::exact);
}
TEST(Exactness, FactorisedOnGraph) {
  const std::vector<Edge> edges = {{0, 1, 0.7}, {0, 2, -0.4}, {3, 1, 0.5}, {4, 2, -1.0}, {5, 0, 0.3}};
  expect_factorised_balance(GraphIsing(random_field(6, 1.0, 4), edges), Ratios::exact);
}
TEST(Exactness, FactorisedOnRbm) {
  expect_factorised_balance(small_rbm(), Ratios::first_order);
  expect_factorised_balance(small_rbm(), Ratios::exact);
}
TEST(Exactness, FactorisedOnSteepRbm) { expect_factorised_balance(steep_rbm(), Ratios::first_order); }
TEST(Exactness, FactorisedOnCategorical) {
  expect_factorised_balance(small_categorical(), Ratios::exact);
  expect_factorised_balance(rough_categorical(), Ratios::first_order);
}
TEST(Exactness, FactorisedWithZeros) {
  expect_factorised_balance(small_with_zeros(), Ratios::exact);
  expect_factorised_balance(rough_zeros(), Ratios::first_order);
  expect_factorised_balance(TableTarget::random({2, 2, 2, 2, 2}, 2.0, 7, 4), Ratios::exact);
}
TEST(Exactness, FactorisedOnNetworks) {
  expect_factorised_balance(MarkovNetwork(mixed_network(0.2, 2)), Ratios::exact);
  expect_factorised_balance(MarkovNetwork(mixed_network_with_evidence(0.1, 2)), Ratios::exact);
}

TEST(Exactness, PathsOnRbm) {
  expect_path_balance(small_rbm(), Ratios::first_order);
  expect_path_balance(small_rbm(), Ratios::exact);
  expect_path_balance(steep_rbm(), Ratios::first_order);
}
TEST(Exactness, PathsOnCategorical) {
  expect_path_balance(small_categorical(), Ratios::exact);
  expect_path_balance(rough_categorical(), Ratios::first_order);
}
TEST(Exactness, PathsWithZeros) {
  expect_path_balance(small_with_zeros(), Ratios::exact);
  expect_path_balance(rough_zeros(), Ratios::first_order);
}
TEST(Exactness, PathsOnNetworks) {
  expect_path_balance(MarkovNetwork(mixed_network(0.2, 2)), Ratios::exact);
  expect_path_balance(MarkovNetwork(mixed_network_with_evidence(0.1, 2)), Ratios::exact);
}

/// log p of independent variables.
TableTarget product_target(const std::vector<Index>& cardinalities) {
  Rng rng(31, 0);
  std::size_t states = 1;
  std::vector<std::vector<double>> own;
  for (const Index k : cardinalities) {
    states *= k;
    own.emplace_back();
    for (Index level = 0; level < k; ++level) own.back().push_back(2.0 * rng.normal());
  }
  std::vector<double> log_p(states, 0.0);
  for (std::size_t s = 0; s < states; ++s) {
    std::size_t rest = s;
    for (std::size_t i = 0; i < own.size(); ++i) {
      log_p[s] += own[i][rest % cardinalities[i]];
      rest /= cardinalities[i];
    }
  }
  return {cardinalities, log_p};
}

TEST(ManyChanges, RelaxationOnProductsIsAlwaysAccepted) {
  for (const auto& target : {product_target({2, 2, 2, 2, 2}), product_target({3, 2, 4, 3})}) {
    const StateSpace space = enumerate_states(target);
    for (const auto& [name, balance] : all_balances()) {
      const FactorisedProposal<TableTarget> kernel(FactorisedForm::relaxation, at_level(balance, -0.5));
      FactorisedProposal<TableTarget>::Scratch scratch(target);
      for (std::size_t s = 0; s < space.size(); s += 3) {
        const auto state = target.make_state(space.states[s]);
        kernel.prepare(target, state, scratch);
        for (std::size_t t = 0; t < space.size(); ++t) {
          ASSERT_NEAR(kernel.evaluate(target, state, scratch, space.states[t]).accept_prob, 1.0, 1e-12) << name;
        }
      }
    }
  }
}

/// How often `propose` comes to each state against what `evaluate` says.
template <class T, class K>
void expect_law_of_proposals(const T& target, const K& kernel) {
  const StateSpace space = enumerate_states(target);
  const auto state = target.make_state(space.states[space.size() / 3]);
  typename K::Scratch scratch(target);
  kernel.prepare(target, state, scratch);
  Rng rng(5, 1);
  constexpr int kDraws = 200000;
  std::vector<double> seen(space.size(), 0.0);
  for (int draw = 0; draw < kDraws; ++draw) {
    rng.fill(scratch.words);
    kernel.propose_many(target, state, scratch, rng);
    std::vector<Value> to = space.states[space.size() / 3];
    for (const Move& move : scratch.moves) to[move.variable] = move.value;
    seen[space.number(to)] += 1.0;
  }
  double chi_square = 0.0;
  int cells = -1;
  for (std::size_t t = 0; t < space.size(); ++t) {
    const double expected = kDraws * kernel.evaluate(target, state, scratch, space.states[t]).prob;
    if (expected == 0.0) {
      ASSERT_EQ(seen[t], 0.0);
    } else if (expected > 5.0) {
      chi_square += (seen[t] - expected) * (seen[t] - expected) / expected;
      ++cells;
    }
  }
  EXPECT_LT(std::abs(chi_square - cells) / std::sqrt(2.0 * cells), 6.0);
}

TEST(Law, ProposalsOfManyChangesAreWhatTheyAreTakenFor) {
  for (const FactorisedForm form : kForms) {
    for (const double level : {-1.5, 0.0, 2.0}) {
      const BalancingFunction function(BalancingFunction::Kind::sqrt, level);
      expect_law_of_proposals(small_rbm(), FactorisedProposal<Rbm>(form, function, Ratios::first_order));
      expect_law_of_proposals(small_categorical(), FactorisedProposal<TableTarget>(form, function));
      expect_law_of_proposals(small_with_zeros(), FactorisedProposal<TableTarget>(form, function));
    }
  }
}

/// Digits of a random number that leave a variable undecided are followed by more.
TEST(Law, UndecidedDigitsAreFollowedByMore) {
  // A variable that flips with probability 0.75 * 2^-16 could not do so with 16 bits alone.
  const double rare = 0.75 * 0x1p-16;
  const LatticeIsing target(1, 2, Boundary::open, 0.0, {0.0, 0.0});
  using Kernel = FactorisedProposal<LatticeIsing>;
  Kernel::Scratch scratch(target);
  const Kernel kernel(FactorisedForm::langevin, BalancingFunction());
  const auto state = target.make_state(std::vector<Value>{0, 0});
  kernel.prepare(target, state, scratch);
  scratch.here.minor[0] = rare;
  scratch.here.minor[1] = -rare;
  Rng rng(1, 2);
  int flips = 0;
  constexpr int kDraws = 100000;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::fill(scratch.words.begin(), scratch.words.end(), 0);  // all digits are zero: neither is decided
    Kernel::draw_flips(scratch, rng);
    flips += (scratch.flips[0] != 0 ? 1 : 0) + (scratch.flips[1] != 0 ? 0 : 1);
  }
  EXPECT_NEAR(flips, 2 * kDraws * 0.75, 6.0 * std::sqrt(2 * kDraws * 0.75 * 0.25));
}

TEST(Law, KernelsOfManyChangesKeepIt) {
  const Rbm rbm(random_rbm(4, 3, 1.0, 7));
  const TableTarget table = TableTarget::random({3, 2, 3}, 1.0, 5);
  for (const FactorisedForm form : kForms) {
    expect_law_kept(rbm, FactorisedProposal<Rbm>(form, BalancingFunction(), Ratios::first_order), 4);
    expect_law_kept(table, FactorisedProposal<TableTarget>(form, BalancingFunction()), 4);
  }
  expect_law_kept(rbm, PathProposal<Rbm>(at_level(BalancingFunction(), std::log(2.0)), Ratios::first_order), 4);
  expect_law_kept(table, PathProposal<TableTarget>(at_level(BalancingFunction(), std::log(2.0))), 4);
}

TEST(Range, KernelsOfManyChangesFindIllegalNumbers) {
  for (const double illegal : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (const std::size_t where : {0U, 1U, 3U, 7U}) {
      const TableTarget table = flat_but_for({2, 2, 2}, where, illegal);
      const TableTarget levels = flat_but_for({3, 2, 2}, where, illegal);
      for (const FactorisedForm form : kForms) {
        EXPECT_TRUE(finds_fault(table, FactorisedProposal<TableTarget>(form, BalancingFunction()))) << where;
        EXPECT_TRUE(finds_fault(levels, FactorisedProposal<TableTarget>(form, BalancingFunction()))) << where;
        EXPECT_TRUE(finds_fault(RoughTarget(table),
                                FactorisedProposal<RoughTarget>(form, BalancingFunction(), Ratios::first_order)))
            << where;
      }
      EXPECT_TRUE(finds_fault(table, PathProposal<TableTarget>(at_level(BalancingFunction(), std::log(2.0))))) << where;
    }
  }
}

TEST(Rbm, ManyChangesAreThoseOneByOne) {
  for (const Index hidden : {5U, 32U, 77U}) {
    const Rbm target(random_rbm(40, hidden, 0.7, 3));
    Rng rng(2, 2);
    std::vector<Rbm::State> together, apart;
    std::vector<std::vector<Move>> moves(3);
    for (int c = 0; c < 3; ++c) {
      std::vector<Value> x(40);
      for (Value& level : x) level = rng.uniform() < 0.5 ? 1 : 0;
      together.push_back(target.make_state(x));
      apart.push_back(target.make_state(x));
      for (Index i = 0; i < 40; ++i) {
        if (rng.uniform() < 0.3 * c) moves[c].push_back({i, static_cast<Value>(1 - x[i])});
      }
    }
    std::vector<Rbm::Changes> all;
    Rbm::State other = target.make_state(std::vector<Value>(40, 1));  // what it was does not matter
    for (int c = 0; c < 3; ++c) all.push_back({&together[c], &together[c], moves[c]});
    const Rbm::Changes from_another[] = {{&other, &together[2], moves[2]}};
    target.change(from_another);
    target.change(all);
    EXPECT_EQ(other.x, together[2].x);
    EXPECT_EQ(other.units, together[2].units);
    EXPECT_EQ(other.on, together[2].on);
    EXPECT_EQ(other.off, together[2].off);
    EXPECT_EQ(other.bias_units, together[2].bias_units);
    EXPECT_EQ(other.count, together[2].count);
    for (int c = 0; c < 3; ++c) {
      for (const Move& move : moves[c]) target.apply(apart[c], move);
      EXPECT_EQ(together[c].x, apart[c].x);
      EXPECT_EQ(together[c].units, apart[c].units);
      EXPECT_EQ(together[c].on, apart[c].on);
      EXPECT_EQ(together[c].bias_units, apart[c].bias_units);
      EXPECT_EQ(together[c].count, apart[c].count);
    }
  }
}

}  // namespace poise::many_changes_test
