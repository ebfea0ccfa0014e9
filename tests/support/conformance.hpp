/// Conformance of a target, with the library's own check, and that nothing drifts.
#pragma once

#include <gtest/gtest.h>

#include <utility>

#include <poise/extend/check/conformance.hpp>
#include "support/enumerate.hpp"

namespace poise::testing {

/// A random walk over all moves, every claim checked at every step.
template <class T>
void expect_conforms(const T& target, int steps, const Levels& start = {}) {
  const CheckReport report = check_target(target, {.steps = steps, .seed = 11, .start = start});
  EXPECT_TRUE(report.ok()) << report.text();
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
