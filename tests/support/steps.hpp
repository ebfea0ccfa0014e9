/// Steps, counted, against the matrix of all that a step may do: with the rests and the local steps that are mixed in.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <poise/extend/kernels/many_changes.hpp>
#include "support/exactness.hpp"

namespace poise::testing {

inline TransitionMatrix product(const TransitionMatrix& a, const TransitionMatrix& b) {
  TransitionMatrix out(a.size(), std::vector<double>(a.size(), 0.0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < a.size(); ++k) {
      if (a[i][k] == 0.0) continue;
      for (std::size_t j = 0; j < a.size(); ++j) out[i][j] += a[i][k] * b[k][j];
    }
  }
  return out;
}

/// Steps from one state, counted, against its row of the matrix.
template <class T, class K>
void expect_steps(const T& target, const K& kernel, const StateSpace& space, const TransitionMatrix& matrix) {
  constexpr int kSteps = 20000;
  typename K::Scratch scratch(target);
  Rng rng(5, 1);
  for (std::size_t s = 0; s < space.size(); s += 7) {
    if (space.probabilities[s] == 0.0) continue;
    std::vector<double> seen(space.size(), 0.0);
    for (int step = 0; step < kSteps; ++step) {
      auto state = target.make_state(space.states[s]);
      kernel.prepare(target, state, scratch);
      const StepInfo info = kernel.step(target, state, scratch, rng);
      std::vector<Value> after(target.num_variables());
      for (Index i = 0; i < after.size(); ++i) after[i] = target.level(state, i);
      seen[space.number(after)] += 1.0;
      std::vector<Value> before = after;
      for_each_change<T>(kernel, target, state, scratch, info,
                         [&](Index variable, Index, Value old) { before[variable] = old; });
      ASSERT_EQ(before, space.states[s]);
      const double log_prob = target.log_prob(target.make_state(after));
      ASSERT_NEAR(target.log_prob(state), log_prob, 1e-12 * (1.0 + std::abs(log_prob)));
    }
    double chi2 = 0.0, cells = 0.0, rare_seen = 0.0, rare_expected = 0.0;
    const auto add = [&](double found, double expected) {
      chi2 += (found - expected) * (found - expected) / expected;
      cells += 1.0;
    };
    for (std::size_t end = 0; end < space.size(); ++end) {
      const double expected = kSteps * matrix[s][end];
      if (expected == 0.0) {
        ASSERT_EQ(seen[end], 0.0);
      } else if (expected < 10.0) {  // too rare for a normal distribution: counted together
        rare_seen += seen[end];
        rare_expected += expected;
      } else {
        add(seen[end], expected);
      }
    }
    if (rare_expected >= 10.0) add(rare_seen, rare_expected);
    EXPECT_LT(std::abs(chi2 - (cells - 1.0)), 6.0 * std::sqrt(2.0 * cells)) << "from state " << s;
  }
}

/// K where a step rests with probability 1/(moves + 1).
inline TransitionMatrix with_rests(TransitionMatrix matrix, Index moves) {
  for (std::size_t s = 0; s < matrix.size(); ++s) {
    for (double& entry : matrix[s]) entry *= moves / (moves + 1.0);
    matrix[s][s] += 1.0 / (moves + 1.0);
  }
  return matrix;
}

/// K of a local step: single changes one after another, each of any move, accepted with min{1, p(x')/p(x)}.
template <class T>
TransitionMatrix local_matrix(const T& target, const StateSpace& space) {
  TransitionMatrix one(space.size(), std::vector<double>(space.size(), 0.0));
  for (std::size_t s = 0; s < space.size(); ++s) {
    if (space.probabilities[s] == 0.0) continue;
    const auto state = target.make_state(space.states[s]);
    double moved = 0.0;
    for (Index m = 0; m < target.num_moves(); ++m) {
      const Move move = target.move_at(state, m);
      std::vector<Value> after = space.states[s];
      after[move.variable] = move.value;
      const std::size_t end = space.number(after);
      const double prob = std::min(1.0, space.probabilities[end] / space.probabilities[s]) / target.num_moves();
      one[s][end] += prob;
      moved += prob;
    }
    one[s][s] += 1.0 - moved;
  }
  TransitionMatrix all = one;
  for (Index k = 1; k < local_changes(target); ++k) all = product(all, one);
  return all;
}

/// K where one step in kLocalEvery is local.
template <class T>
TransitionMatrix with_local_steps(TransitionMatrix matrix, const T& target, const StateSpace& space) {
  const TransitionMatrix local = local_matrix(target, space);
  for (std::size_t s = 0; s < matrix.size(); ++s) {
    for (std::size_t t = 0; t < matrix.size(); ++t) {
      matrix[s][t] += (local[s][t] - matrix[s][t]) / kLocalEvery;
    }
  }
  return matrix;
}

/// A reversible matrix, which steps follow.
template <class T, class K>
void expect_reversible_steps(const T& target, const K& kernel, const StateSpace& space,
                             const TransitionMatrix& matrix) {
  EXPECT_LE(row_error(matrix, space), 1e-12);
  EXPECT_LE(detailed_balance_error(matrix, space), 1e-12);
  expect_steps(target, kernel, space, matrix);
}

}  // namespace poise::testing
