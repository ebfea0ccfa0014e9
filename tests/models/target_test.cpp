/// Conformance of the Ising targets and of the test double.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "support/conformance.hpp"
#include "support/enumerate.hpp"
#include "support/small_targets.hpp"

namespace poise::target_test {

using namespace poise::testing;

static_assert(SparseTarget<LatticeIsing>);
static_assert(SparseTarget<GraphIsing>);
static_assert(SparseTarget<TableTarget>);

TEST(Conformance, LatticeTorus) { expect_conforms(small_torus(), 300); }
TEST(Conformance, LatticeOpen) { expect_conforms(small_open(), 300); }
TEST(Conformance, LatticeLine) { expect_conforms(small_line(), 300); }
TEST(Conformance, LatticeOneRow) {
  expect_conforms(LatticeIsing(1, 5, Boundary::open, 0.6, random_field(5, 1.0, 3)), 200);
}
TEST(Conformance, LatticeOneSite) { expect_conforms(LatticeIsing(1, 1, Boundary::open, 0.6, {0.3}), 20); }
TEST(Conformance, LatticeOblong) {
  expect_conforms(LatticeIsing(5, 7, Boundary::torus, 1.1, random_field(35, 1.0, 3)), 200);
}
TEST(Conformance, Graph) { expect_conforms(small_graph(), 3000); }
TEST(Conformance, Table) { expect_conforms(small_categorical(), 100); }

TEST(LatticeIsing, FlippingThereAndBackIsExactlyOpposite) {
  const LatticeIsing target = small_torus();
  auto state = target.make_state(Levels{1, 0, 0, 1, 1, 0, 1, 0, 1});
  for (Index i = 0; i < 9; ++i) {
    const double there = target.log_ratio(state, target.move_at(state, i));
    target.apply(state, target.move_at(state, i));
    EXPECT_EQ(target.log_ratio(state, target.move_at(state, i)), -there);
  }
}

/// All levels at once lead to the same state as one after another.
template <class T>
void expect_assigns(const T& target) {
  Rng rng(8, 1);
  auto state = target.make_state(Levels(target.num_variables(), 0));
  for (int k = 0; k < 20; ++k) {
    Levels x(target.num_variables());
    for (Index i = 0; i < x.size(); ++i) x[i] = static_cast<Value>(rng.uniform() * target.cardinality(i));
    target.assign(state, x);
    const auto fresh = target.make_state(x);
    EXPECT_EQ(target.log_prob(state), target.log_prob(fresh));
    std::vector<double> statistic(1), expected(1);
    target.statistics(state, statistic);
    target.statistics(fresh, expected);
    EXPECT_EQ(statistic, expected);
    for (Index i = 0; i < target.num_moves(); ++i) {
      EXPECT_EQ(target.log_ratio(state, target.move_at(state, i)), target.log_ratio(fresh, target.move_at(fresh, i)));
    }
  }
}

TEST(Assign, IsASetOfMoves) {
  expect_assigns(small_torus());
  expect_assigns(small_open());
  expect_assigns(small_line());
  expect_assigns(LatticeIsing(1, 1, Boundary::open, 0.6, {0.3}));
  expect_assigns(LatticeIsing(5, 7, Boundary::torus, 1.1, random_field(35, 1.0, 3)));
  expect_assigns(LatticeIsing(40, 33, Boundary::open, 0.4, std::vector<double>(1320, 0.0)));
  expect_assigns(small_graph());
}

TEST(LatticeIsing, RejectsWhatItCannotHold) {
  EXPECT_THROW(LatticeIsing(2, 5, Boundary::torus, 1.0, std::vector<double>(10)), InputError);
  EXPECT_THROW(LatticeIsing(3, 3, Boundary::torus, 1.0, std::vector<double>(8)), InputError);
  EXPECT_THROW(LatticeIsing(3, 3, Boundary::torus, NAN, std::vector<double>(9)), InputError);
  EXPECT_THROW(LatticeIsing(3, 3, Boundary::torus, 1.0, std::vector<double>(9, NAN)), InputError);
}

TEST(Drift, NoneOnTorus) { expect_no_drift(small_torus()); }
TEST(Drift, NoneOnOpenLattice) { expect_no_drift(small_open()); }
TEST(Drift, NoneOnGraph) { expect_no_drift(small_graph()); }

TEST(GraphIsing, RefusesGraphsItWouldMisread) {
  const auto refusal = [](std::vector<double> field, std::vector<Edge> edges) -> std::string {
    try {
      GraphIsing(std::move(field), edges);
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  };
  const std::vector<double> zeros(3);
  const std::string twice = "found two edges between variables 0 and 2, expected one with the sum of their couplings";
  EXPECT_EQ(refusal(zeros, {{0, 2, 1.0}, {0, 1, 1.0}, {0, 2, 0.5}}), twice);
  EXPECT_EQ(refusal(zeros, {{0, 2, 1.0}, {2, 0, 0.5}}), twice);
  EXPECT_EQ(refusal(zeros, {{1, 1, 1.0}}),
            "found an edge from variable 1 to variable 1, expected two different ones of 3");
  EXPECT_EQ(refusal(zeros, {{1, 3, 1.0}}),
            "found an edge from variable 1 to variable 3, expected two different ones of 3");
  EXPECT_EQ(refusal(zeros, {{1, 2, NAN}}), "found nan as the coupling of variables 1 and 2, expected a finite number");
  EXPECT_EQ(refusal({0.0, INFINITY}, {}), "found inf as the field of variable 1, expected a finite number");
  EXPECT_NE(refusal({1e308, 1e308}, {}), "none");
  EXPECT_EQ(refusal(zeros, {{0, 2, 1.0}, {0, 1, 1.0}, {2, 1, 0.5}}), "none");
}

TEST(GraphIsing, ASmallFieldBesideAHugeOneIsNotLost) {
  const GraphIsing target({1e30, 1.0}, {});
  const auto state = target.make_state(Levels{1, 1});
  EXPECT_EQ(target.log_ratio(state, target.move_at(state, 1)), -2.0);
}

}  // namespace poise::target_test
