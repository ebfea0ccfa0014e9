/// Does sampling leave a target's distribution alone? The whole transition matrix of a kernel, on targets small enough
/// to enumerate: no draws, no tolerance for chance.
///
///     const CheckReport report = check_exactness(my_small_target);
///
/// A kernel of one's own is checked with `transition_matrix` and the errors below, which are rounding (1e-14) where the
/// kernel is right.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/learning/balancing_function.hpp>
#include <poise/extend/check/enumerate.hpp>
#include <poise/extend/check/report.hpp>
#include <poise/extend/kernels/gibbs.hpp>
#include <poise/extend/kernels/informed_proposal.hpp>
#include <poise/extend/kernels/locally_balanced.hpp>

namespace poise {

/// K(x, y) by the numbers of x and y in a StateSpace. Rows of states without probability are zero.
using TransitionMatrix = std::vector<std::vector<double>>;

/// A kernel that says how likely it is to propose each move of a state, and to accept it.
template <class K, class T>
concept ProposalKernel = Kernel<K, T> &&
    requires(const K& kernel, const T& target, const typename T::State& state, typename K::Scratch& scratch) {
  { kernel.evaluate(target, state, scratch, Index{}).prob } -> std::convertible_to<double>;
  { kernel.evaluate(target, state, scratch, Index{}).accept_prob } -> std::convertible_to<double>;
};

/// K of one step, from the same `evaluate` that the step uses.
template <Target T, ProposalKernel<T> K>
TransitionMatrix transition_matrix(const K& kernel, const T& target, const StateSpace& space) {
  TransitionMatrix matrix(space.size(), std::vector<double>(space.size(), 0.0));
  typename K::Scratch scratch(target);
  for (std::size_t s = 0; s < space.size(); ++s) {
    if (space.probabilities[s] == 0.0) continue;
    const auto state = target.make_state(space.states[s]);
    kernel.prepare(target, state, scratch);
    double moved = 0.0;
    for (Index m = 0; m < target.num_moves(); ++m) {
      const auto proposal = kernel.evaluate(target, state, scratch, m);
      const Move move = target.move_at(state, m);
      std::vector<Value> after = space.states[s];
      after[move.variable] = move.value;
      matrix[s][space.number(after)] += proposal.prob * proposal.accept_prob;
      moved += proposal.prob * proposal.accept_prob;
    }
    matrix[s][s] += 1.0 - moved;
  }
  return matrix;
}

/// K of one sweep of Gibbs: the product of the single-site kernels in their order.
template <Target T>
TransitionMatrix transition_matrix(const Gibbs<T>& kernel, const T& target, const StateSpace& space) {
  typename Gibbs<T>::Scratch scratch(target);
  kernel.prepare(target, target.make_state(space.states[0]), scratch);
  TransitionMatrix matrix(space.size(), std::vector<double>(space.size(), 0.0));
  for (std::size_t s = 0; s < space.size(); ++s) matrix[s][s] = 1.0;
  for (const Index i : scratch.order) {
    TransitionMatrix next(space.size(), std::vector<double>(space.size(), 0.0));
    for (std::size_t middle = 0; middle < space.size(); ++middle) {
      if (space.probabilities[middle] == 0.0) continue;
      const auto state = target.make_state(space.states[middle]);
      kernel.conditional(target, state, scratch, i);
      for (Index level = 0; level < target.cardinality(i); ++level) {
        std::vector<Value> after = space.states[middle];
        after[i] = static_cast<Value>(level);
        const std::size_t end = space.number(after);
        for (std::size_t s = 0; s < space.size(); ++s) next[s][end] += matrix[s][middle] * scratch.weights[level];
      }
    }
    matrix = std::move(next);
  }
  return matrix;
}

/// How far the rows of possible states are from distributions over possible states: sums from 1, entries below 0, and
/// what goes to states without probability.
double row_error(const TransitionMatrix& matrix, const StateSpace& space);

/// The largest |p(x) K(x, y) - p(y) K(y, x)| / max{p(x), p(y)}.
double detailed_balance_error(const TransitionMatrix& matrix, const StateSpace& space);

/// The largest |(p K)(y) - p(y)|: for kernels that are not reversible, such as sweeps.
double invariance_error(const TransitionMatrix& matrix, const StateSpace& space);

struct ExactnessOptions {
  double tolerance = 1e-12;        ///< of the errors above
  std::size_t most_states = 4096;  ///< matrices have the square of it
};

/// Locally balanced kernels with the four fixed balancing functions, and Gibbs, on the target. With a target that keeps
/// its contract (`check_target`) nothing can go wrong here; with one that does not, this says how much it matters.
template <Target T>
CheckReport check_exactness(const T& target, const ExactnessOptions& options = {}) {
  CheckReport report;
  const StateSpace space = enumerate_states(target, options.most_states);
  const auto hold = [&](const std::string& kernel, const char* what, double error) {
    if (error <= options.tolerance) return;
    report.problems.push_back(
        fmt::format("{}: {} is off by {:.3g}, expected at most {:.3g}", kernel, what, error, options.tolerance));
  };
  for (std::size_t g = 0; g < kFunctionNames.size(); ++g) {
    const BalancingFunction balance(static_cast<BalancingFunction::Kind>(g));
    const std::string name = fmt::format("lb:g={}", kFunctionNames[g]);
    TransitionMatrix matrix;
    if constexpr (SparseTarget<T>) {
      matrix = transition_matrix(LocallyBalanced<T>(balance), target, space);
    } else {
      matrix = transition_matrix(InformedProposal<T>(balance), target, space);
    }
    hold(name, "a row of the transition matrix", row_error(matrix, space));
    hold(name, "detailed balance", detailed_balance_error(matrix, space));
  }
  const TransitionMatrix sweep = transition_matrix(Gibbs<T>(), target, space);
  hold("gibbs", "a row of the transition matrix", row_error(sweep, space));
  hold("gibbs", "the distribution after a sweep", invariance_error(sweep, space));
  return report;
}

}  // namespace poise
