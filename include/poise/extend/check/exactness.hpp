/// Does a kernel leave a target's distribution alone? Checked in full on targets small enough to enumerate.
///
///     const CheckReport target = check_exactness(my_small_target);
///     const CheckReport kernel = check_kernel("mine", my_kernel, my_small_target);
///
/// The whole transition matrix of a kernel that has `evaluate` must balance to rounding, with no tolerance for chance.
/// The steps of any kernel must keep the law of chains that start from exact draws.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/check/conformance.hpp>
#include <poise/extend/kernels/gibbs.hpp>
#include <poise/extend/kernels/informed_proposal.hpp>
#include <poise/extend/kernels/locally_balanced.hpp>
#include <poise/extend/learning/balancing_function.hpp>

namespace poise {

/// All states of a target, the first variable changing fastest, and their probabilities, from log p from scratch.
struct StateSpace {
  std::vector<std::vector<Value>> states;
  std::vector<double> probabilities;

  [[nodiscard]] std::size_t size() const { return states.size(); }
  /// Where a state is in the list.
  [[nodiscard]] std::size_t number(const std::vector<Value>& x) const {
    std::size_t place = 0;
    for (std::size_t i = 0; i < x.size(); ++i) place += strides[i] * x[i];
    return place;
  }

  std::vector<std::size_t> strides;  ///< how far apart states are that differ by one level in a variable
};

/// Throws InputError for a target of more than `most` states, or one whose log p cannot be normalised.
template <Target T>
StateSpace enumerate_states(const T& target, std::size_t most = 1U << 16U) {
  StateSpace space;
  std::vector<Value> x(target.num_variables(), 0);
  std::size_t size = 1;
  for (Index i = 0; i < target.num_variables(); ++i) {
    space.strides.push_back(size);
    size *= target.cardinality(i);
    if (size > most) {
      throw InputError(fmt::format("the target has more than {} states, expected one small enough to enumerate", most));
    }
  }
  double largest = -std::numeric_limits<double>::infinity();
  for (std::size_t s = 0; s < size; ++s) {
    for (Index i = 0; i < target.num_variables(); ++i) {
      x[i] = static_cast<Value>(s / space.strides[i] % target.cardinality(i));
    }
    space.states.push_back(x);
    space.probabilities.push_back(target.log_prob(target.make_state(x)));
    if (std::isnan(space.probabilities.back())) throw InputError(fmt::format("log p of state {} is not a number", s));
    largest = std::max(largest, space.probabilities.back());
  }
  if (!std::isfinite(largest)) throw InputError(fmt::format("the largest log p of all states is {}", largest));
  double sum = 0.0;
  for (double& p : space.probabilities) sum += p = std::exp(p - largest);
  for (double& p : space.probabilities) p /= sum;
  return space;
}

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

/// z of a chi-square test whether states are exact draws; `count` says how often each state of the space was seen.
double chi_square_z(std::span<const double> count, const StateSpace& space);

/// The state at a place between 0 and 1 of the cumulated probabilities.
std::size_t state_at(const StateSpace& space, double place);

/// z of that test after independent chains, each started from an exact draw, have made some steps. A right kernel has
/// |z| < 6 but for one seed in a billion; one that always accepts is far beyond it.
template <Target T, class K>
double law_z(const K& kernel, const T& target, const StateSpace& space, int chains = 20000, int steps = 7) {
  std::vector<double> count(space.size(), 0.0);
  for (int c = 0; c < chains; ++c) {
    Rng rng(77, static_cast<std::uint64_t>(c));
    auto state = target.make_state(space.states[state_at(space, rng.uniform())]);
    typename K::Scratch scratch(target);
    kernel.prepare(target, state, scratch);
    for (int step = 0; step < steps; ++step) kernel.step(target, state, scratch, rng);
    if constexpr (requires { scratch.failure; }) {
      if (scratch.failure != nullptr) throw std::runtime_error(scratch.failure);
    }
    ++count[space.number(levels_of(target, state))];
  }
  return chi_square_z(count, space);
}

struct ExactnessOptions {
  double tolerance = 1e-12;        ///< of the errors above
  double most_z = 6.0;             ///< of the law of steps
  std::size_t most_states = 4096;  ///< matrices have the square of it
};

/// A kernel on a target: the transition matrix by `evaluate`, where the kernel has it, and the law of its steps.
template <Target T, Kernel<T> K>
CheckReport check_kernel(const std::string& name, const K& kernel, const T& target,
                         const ExactnessOptions& options = {}) {
  CheckReport report;
  const StateSpace space = enumerate_states(target, options.most_states);
  const auto hold = [&](const char* what, double error, double most) {
    if (error <= most) return;
    report.problems.push_back(fmt::format("{}: {} is off by {:.3g}, expected at most {:.3g}", name, what, error, most));
  };
  if constexpr (ProposalKernel<K, T>) {
    const TransitionMatrix matrix = transition_matrix(kernel, target, space);
    hold("a row of the transition matrix", row_error(matrix, space), options.tolerance);
    hold("detailed balance", detailed_balance_error(matrix, space), options.tolerance);
  }
  hold("the law of states after seven steps (a z value)", std::abs(law_z(kernel, target, space)), options.most_z);
  return report;
}

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
