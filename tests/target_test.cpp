/// Conformance: incremental ratios, affected moves and apply against recomputation from scratch, for every target.
#include <gtest/gtest.h>

#include <cmath>

#include "support/enumerate.hpp"
#include "support/small_targets.hpp"

namespace poise {
namespace {

using namespace poise::testing;

static_assert(SparseTarget<LatticeIsing>);
static_assert(SparseTarget<GraphIsing>);
static_assert(SparseTarget<TableTarget>);

template <class T>
Levels levels_of(const T& target, const typename T::State& state) {
  Levels x(target.num_variables());
  for (Index i = 0; i < target.num_variables(); ++i) x[i] = target.level(state, i);
  return x;
}

/// A random walk over all moves, every claim checked at every step.
template <class T>
void expect_conforms(const T& target, int steps) {
  Rng rng(11, 0);
  Levels x(target.num_variables(), 0);
  auto state = target.make_state(x);
  for (int step = 0; step < steps; ++step) {
    const Levels now = levels_of(target, state);
    const auto fresh = target.make_state(now);
    ASSERT_NEAR(target.log_prob(state), target.log_prob(fresh), 1e-9);
    std::vector<double> ratios(target.num_moves());
    target.log_ratios(state, ratios);
    std::vector<Move> moves;
    for (Index m = 0; m < target.num_moves(); ++m) {
      moves.push_back(target.move_at(state, m));
      Levels after = now;
      after[moves[m].variable] = moves[m].value;
      ASSERT_NE(now[moves[m].variable], moves[m].value);
      const double exact = target.log_prob(target.make_state(after)) - target.log_prob(fresh);
      ASSERT_NEAR(target.log_ratio(state, moves[m]), exact, 1e-9);
      ASSERT_NEAR(ratios[m], exact, 1e-9);
    }
    const auto chosen = static_cast<Index>(rng.uniform() * target.num_moves());
    std::vector<double> predicted = ratios;
    std::vector<int> seen(target.num_moves(), 0);
    std::size_t count = 0;
    target.for_each_affected(state, chosen, [&](const AffectedLanes& lanes) {
      count += lanes.count;
      for (unsigned k = 0; k < 8; ++k) {
        if (k >= lanes.count) {
          ASSERT_EQ(lanes.log_ratios[k], -INFINITY);
          continue;
        }
        predicted[lanes.moves[k]] = lanes.log_ratios[k];
        ++seen[lanes.moves[k]];
      }
    });
    ASSERT_LE(count, target.max_affected());
    for (const int times : seen) ASSERT_LE(times, 1);
    target.apply(state, moves[chosen]);
    target.log_ratios(state, ratios);
    for (Index m = 0; m < target.num_moves(); ++m) ASSERT_NEAR(ratios[m], predicted[m], 1e-9);
  }
}

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

TEST(LatticeIsing, RejectsWhatItCannotHold) {
  EXPECT_THROW(LatticeIsing(2, 5, Boundary::torus, 1.0, std::vector<double>(10)), InputError);
  EXPECT_THROW(LatticeIsing(3, 3, Boundary::torus, 1.0, std::vector<double>(8)), InputError);
}

/// Equal states have equal log p to the last bit, however long the way to them; ratios do not drift.
template <class T>
void expect_no_drift(const T& target) {
  Levels x(target.num_variables(), 0);
  auto state = target.make_state(x);
  Rng rng(5, 5);
  for (int step = 0; step < 200000; ++step) {
    target.apply(state, target.move_at(state, static_cast<Index>(rng.uniform() * target.num_moves())));
  }
  const auto fresh = target.make_state(levels_of(target, state));
  EXPECT_EQ(target.log_prob(state), target.log_prob(fresh));
  for (Index m = 0; m < target.num_moves(); ++m) {
    EXPECT_NEAR(target.log_ratio(state, target.move_at(state, m)), target.log_ratio(fresh, target.move_at(fresh, m)),
                1e-12);
  }
}

TEST(Drift, NoneOnTorus) { expect_no_drift(small_torus()); }
TEST(Drift, NoneOnOpenLattice) { expect_no_drift(small_open()); }
TEST(Drift, NoneOnGraph) { expect_no_drift(small_graph()); }

TEST(GraphIsing, ASmallFieldBesideAHugeOneIsNotLost) {
  const GraphIsing target({1e30, 1.0}, {});
  const auto state = target.make_state(Levels{1, 1});
  EXPECT_EQ(target.log_ratio(state, target.move_at(state, 1)), -2.0);
}

}  // namespace
}  // namespace poise
