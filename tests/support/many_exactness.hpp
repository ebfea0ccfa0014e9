/// Exactness of kernels that change many variables a step.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include <poise/extend/kernels/factorised_proposal.hpp>
#include <poise/extend/kernels/path_proposal.hpp>
#include "support/exactness.hpp"

namespace poise::testing {

inline constexpr FactorisedForm kForms[] = {FactorisedForm::relaxation, FactorisedForm::langevin};

inline BalancingFunction at_level(const BalancingFunction& function, double level) {
  if (function.table() == nullptr) return BalancingFunction(function.kind(), level);
  std::vector<double> phi(function.table()->phi().begin(), function.table()->phi().end());
  for (double& value : phi) value += level;
  return BalancingFunction(std::make_shared<const BalanceTable>(phi));
}

/// K from `evaluate` of all pairs of states. The probabilities of proposals must add up to 1.
template <class T>
TransitionMatrix whole_matrix(const FactorisedProposal<T>& kernel, const T& target, const StateSpace& space) {
  TransitionMatrix matrix(space.size(), std::vector<double>(space.size(), 0.0));
  typename FactorisedProposal<T>::Scratch scratch(target);
  for (std::size_t s = 0; s < space.size(); ++s) {
    if (space.probabilities[s] == 0.0) continue;
    const auto state = target.make_state(space.states[s]);
    kernel.prepare(target, state, scratch);
    double proposed = 0.0, moved = 0.0;
    for (std::size_t t = 0; t < space.size(); ++t) {
      const auto proposal = kernel.evaluate(target, state, scratch, space.states[t]);
      proposed += proposal.prob;
      if (t == s) continue;
      matrix[s][t] = proposal.prob * proposal.accept_prob;
      moved += matrix[s][t];
    }
    EXPECT_NEAR(proposed, 1.0, 1e-12);
    matrix[s][s] = 1.0 - moved;
  }
  return matrix;
}

template <class T>
void expect_factorised_balance(const T& target, Ratios ratios) {
  const StateSpace space = enumerate_states(target);
  for (const FactorisedForm form : kForms) {
    for (const double level : {-2.0, 0.3}) {
      for (const auto& [name, balance] : all_balances()) {
        SCOPED_TRACE(name);
        const FactorisedProposal<T> kernel(form, at_level(balance, level), ratios);
        const TransitionMatrix matrix = whole_matrix(kernel, target, space);
        EXPECT_LE(row_error(matrix, space), 1e-12);
        EXPECT_LE(detailed_balance_error(matrix, space), 1e-12);
      }
    }
  }
}

/// K from `evaluate` of all paths of every length.
template <class T>
TransitionMatrix path_matrix(const PathProposal<T>& kernel, const T& target, const StateSpace& space) {
  TransitionMatrix matrix(space.size(), std::vector<double>(space.size(), 0.0));
  typename PathProposal<T>::Scratch scratch(target);
  for (std::size_t s = 0; s < space.size(); ++s) {
    if (space.probabilities[s] == 0.0) continue;
    const auto state = target.make_state(space.states[s]);
    kernel.prepare(target, state, scratch);
    const Index longest = kernel.longest(scratch);
    double moved = 0.0;
    std::vector<Index> path;
    const std::function<void()> extend = [&] {
      for (Index m = 0; m < target.num_moves(); ++m) {
        path.push_back(m);
        const auto proposal = kernel.evaluate(target, state, scratch, path);
        if (proposal.prob > 0.0) {
          std::vector<Value> to = space.states[s];
          for (const Index move : path) to[target.move_at(state, move).variable] = target.move_at(state, move).value;
          const double prob = proposal.prob * proposal.accept_prob / longest;
          matrix[s][space.number(to)] += prob;
          moved += prob;
          if (path.size() < longest) extend();
        }
        path.pop_back();
      }
    };
    extend();
    matrix[s][s] += 1.0 - moved;
  }
  return matrix;
}

template <class T>
void expect_path_balance(const T& target, Ratios ratios) {
  const StateSpace space = enumerate_states(target);
  for (const Index radius : {1U, 2U}) {
    for (const auto& [name, balance] : all_balances()) {
      SCOPED_TRACE(name);
      const TransitionMatrix matrix =
          path_matrix(PathProposal<T>(at_level(balance, std::log(radius)), ratios), target, space);
      EXPECT_LE(row_error(matrix, space), 1e-12);
      EXPECT_LE(detailed_balance_error(matrix, space), 1e-12);
    }
  }
}

}  // namespace poise::testing
