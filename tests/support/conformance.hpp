/// Conformance: incremental ratios, affected moves and apply against recomputation from scratch, for any target.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "support/enumerate.hpp"

namespace poise::testing {

template <class T>
Levels levels_of(const T& target, const typename T::State& state) {
  Levels x(target.num_variables());
  for (Index i = 0; i < target.num_variables(); ++i) x[i] = target.level(state, i);
  return x;
}

/// A random walk over all moves, every claim checked at every step.
template <class T>
void expect_conforms(const T& target, int steps, Levels x = {}) {
  Rng rng(11, 0);
  x.resize(target.num_variables(), 0);
  auto state = target.make_state(x);
  const auto same = [](double a, double b) { return a == b || std::abs(a - b) <= 1e-9; };
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
      ASSERT_TRUE(same(target.log_ratio(state, moves[m]), exact)) << target.log_ratio(state, moves[m]) << " " << exact;
      ASSERT_TRUE(same(ratios[m], exact)) << ratios[m] << " " << exact;
    }
    // Only moves to states of positive probability are ever made.
    Index chosen = target.num_moves();
    for (int tries = 0; tries < 1000 && (chosen == target.num_moves() || ratios[chosen] == -INFINITY); ++tries) {
      chosen = static_cast<Index>(rng.uniform() * target.num_moves());
    }
    ASSERT_GT(ratios[chosen], -INFINITY);
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
    for (Index m = 0; m < target.num_moves(); ++m) {
      ASSERT_TRUE(same(ratios[m], predicted[m])) << ratios[m] << " " << predicted[m];
    }
  }
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

}  // namespace poise::testing
