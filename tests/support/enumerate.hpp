/// Small targets in full: all states, their exact probabilities, and the whole transition matrix of a kernel.
#pragma once

#include <cmath>
#include <map>
#include <vector>

#include <poise/kernel/gibbs.hpp>
#include <poise/kernel/locally_balanced.hpp>

namespace poise::testing {

using Levels = std::vector<Value>;

template <class T>
std::vector<Levels> all_states(const T& target) {
  std::vector<Levels> states = {Levels(target.num_variables(), 0)};
  for (Index i = 0; i < target.num_variables(); ++i) {
    const std::size_t before = states.size();
    for (Value level = 1; level < target.cardinality(i); ++level) {
      for (std::size_t s = 0; s < before; ++s) {
        states.push_back(states[s]);
        states.back()[i] = level;
      }
    }
  }
  return states;
}

/// Normalised probabilities, from log p computed from scratch.
template <class T>
std::vector<double> probabilities(const T& target, const std::vector<Levels>& states) {
  std::vector<double> p;
  double largest = -std::numeric_limits<double>::infinity();
  for (const Levels& x : states) {
    p.push_back(target.log_prob(target.make_state(x)));
    largest = std::max(largest, p.back());
  }
  double sum = 0.0;
  for (double& value : p) sum += value = std::exp(value - largest);
  for (double& value : p) value /= sum;
  return p;
}

using Matrix = std::vector<std::vector<double>>;

/// K(x, y) of a locally balanced kernel, from the same `evaluate` that its step uses.
template <class T>
Matrix transition_matrix(const LocallyBalanced<T>& kernel, const T& target, const std::vector<Levels>& states) {
  std::map<Levels, std::size_t> number;
  for (std::size_t s = 0; s < states.size(); ++s) number[states[s]] = s;
  Matrix matrix(states.size(), std::vector<double>(states.size(), 0.0));
  typename LocallyBalanced<T>::Scratch scratch(target);
  for (std::size_t s = 0; s < states.size(); ++s) {
    const auto state = target.make_state(states[s]);
    if (!std::isfinite(target.log_prob(state))) continue;
    kernel.prepare(target, state, scratch);
    double moved = 0.0;
    for (Index m = 0; m < target.num_moves(); ++m) {
      const auto proposal = kernel.evaluate(target, state, scratch, m);
      const Move move = target.move_at(state, m);
      Levels after = states[s];
      after[move.variable] = move.value;
      matrix[s][number.at(after)] += proposal.prob * proposal.accept_prob;
      moved += proposal.prob * proposal.accept_prob;
    }
    matrix[s][s] += 1.0 - moved;
  }
  return matrix;
}

/// K of one sweep of Gibbs: the product of the single-site kernels in their order.
template <class T>
Matrix transition_matrix(const Gibbs<T>& kernel, const T& target, const std::vector<Levels>& states) {
  std::map<Levels, std::size_t> number;
  for (std::size_t s = 0; s < states.size(); ++s) number[states[s]] = s;
  typename Gibbs<T>::Scratch scratch(target);
  kernel.prepare(target, target.make_state(states[0]), scratch);
  Matrix matrix(states.size(), std::vector<double>(states.size(), 0.0));
  for (std::size_t s = 0; s < states.size(); ++s) matrix[s][s] = 1.0;
  for (const Index i : scratch.order) {
    Matrix next(states.size(), std::vector<double>(states.size(), 0.0));
    for (std::size_t middle = 0; middle < states.size(); ++middle) {
      const auto state = target.make_state(states[middle]);
      if (!std::isfinite(target.log_prob(state))) continue;
      kernel.conditional(target, state, scratch, i);
      for (Value level = 0; level < target.cardinality(i); ++level) {
        Levels after = states[middle];
        after[i] = level;
        const std::size_t end = number.at(after);
        for (std::size_t s = 0; s < states.size(); ++s) next[s][end] += matrix[s][middle] * scratch.weights[level];
      }
    }
    matrix = std::move(next);
  }
  return matrix;
}

}  // namespace poise::testing
