/// Exactness: transition matrices of every kernel against the probabilities they must leave alone.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <poise/extend/check/exactness.hpp>
#include <poise/extend/learning/learned_function.hpp>
#include "support/enumerate.hpp"
#include "support/plain.hpp"

namespace poise::testing {

struct NamedBalance {
  std::string name;
  BalancingFunction balance;
};

/// Every function there is: fixed ones, and every learned family at random parameters.
inline std::vector<NamedBalance> all_balances() {
  std::vector<NamedBalance> all;
  for (int function = 0; function < 4; ++function)
    all.push_back({kFunctionNames[function], BalancingFunction(static_cast<BalancingFunction::Kind>(function))});
  std::vector<std::pair<std::string, std::unique_ptr<LearnedFunction>>> learned;
  learned.emplace_back("mixture", std::make_unique<MixtureFunction>());
  learned.emplace_back("spline", std::make_unique<SplineFunction>());
  learned.emplace_back("mlp", std::make_unique<MlpFunction>());
  learned.emplace_back("monotone", std::make_unique<MonotoneFunction>(4, 3));
  Rng rng(17, 0);
  for (auto& [name, function] : learned) {
    for (double& parameter : function->parameters()) parameter += 2.0 * rng.normal();
    all.push_back({name, BalancingFunction(function->freeze())});
  }
  return all;
}

template <class T, class K>
void expect_reversible(const K& kernel, const T& target, const StateSpace& space, const std::string& name) {
  const TransitionMatrix matrix = transition_matrix(kernel, target, space);
  EXPECT_LE(row_error(matrix, space), 1e-12) << name;
  EXPECT_LE(detailed_balance_error(matrix, space), 1e-12) << name;
}

template <class T>
void expect_detailed_balance(const T& target) {
  const StateSpace space = enumerate_states(target);
  for (const auto& [name, balance] : all_balances()) {
    LocallyBalanced<T> kernel(balance);
    expect_reversible(kernel, target, space, name);
    if constexpr (CodedTarget<T>) {
      // With weights from a table the matrix is the same.
      const TransitionMatrix plain = transition_matrix(kernel, target, space);
      kernel.tabulate(target);
      expect_reversible(kernel, target, space, name);
      const TransitionMatrix tabled = transition_matrix(kernel, target, space);
      for (std::size_t s = 0; s < space.size(); ++s) {
        for (std::size_t t = 0; t < space.size(); ++t) ASSERT_NEAR(plain[s][t], tabled[s][t], 1e-13) << name;
      }
    }
  }
}

template <class T>
void expect_invariant(const T& target) {
  const StateSpace space = enumerate_states(target);
  EXPECT_LE(invariance_error(transition_matrix(Gibbs<T>(), target, space), space), 1e-12);
}

/// Steps agree with the matrix: many short chains from exact draws keep the law.
template <class T, class K>
void expect_law_kept(const T& target, const K& kernel, int steps, const std::string& name = "") {
  EXPECT_LT(std::abs(law_z(kernel, target, enumerate_states(target), 20000, steps)), 6.0) << name;
}

/// The plain kernel recomputes everything at every step. Both kernels read the same random numbers in the same way, so
/// they must make the same chain.
template <class T>
void expect_same_chain(const T& target, BalancingFunction balance, int steps, bool tabled = false) {
  LocallyBalanced<T> fast(balance);
  if (tabled) fast.tabulate(target);
  const PlainBalanced<T> plain(balance);
  Levels x(target.num_variables(), 0);
  auto fast_state = target.make_state(x), plain_state = target.make_state(x);
  typename LocallyBalanced<T>::Scratch fast_scratch(target);
  typename PlainBalanced<T>::Scratch plain_scratch(target);
  fast.prepare(target, fast_state, fast_scratch);
  plain.prepare(target, plain_state, plain_scratch);
  Rng fast_rng(9, 1), plain_rng(9, 1);
  for (int step = 0; step < steps; ++step) {
    const StepInfo a = fast.step(target, fast_state, fast_scratch, fast_rng);
    const StepInfo b = plain.step(target, plain_state, plain_scratch, plain_rng);
    ASSERT_NEAR(a.accept_prob, b.accept_prob, 1e-10);
    ASSERT_EQ(a.accepted, b.accepted) << "at step " << step;
    for (Index i = 0; i < target.num_variables(); ++i) {
      ASSERT_EQ(target.level(fast_state, i), target.level(plain_state, i)) << "at step " << step;
    }
  }
}

}  // namespace poise::testing
