/// The transition probabilities of one state, T_m = A_m Q_m over its moves m, and the kernels that have their gradient.
#pragma once

#include <span>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/learning/balancing_function.hpp>

namespace poise {

/// Which transition probabilities of a state an objective needs.
struct TransitionGradientOptions {
  bool all_moves = true;       ///< every move (of at most max_variables variables, evenly spread)
  bool sampled_moves = false;  ///< one proposal from Q and one uniform move, as the paper's estimators use
  Index max_variables = 4096;
};

/// Transition probabilities of one state at the present balancing function.
struct TransitionGradient {
  struct Entry {
    Index move;
    Index position;  ///< which of the variables looked at it changes
    Value value;     ///< the level it gives that variable
    double log_ratio;
    double accept_prob;
    double transition;  ///< A Q
  };
  std::vector<Entry> entries;  ///< of the variables looked at, move by move
  std::vector<Entry> sampled;  ///< the proposal, then the uniform move; empty unless asked for
  struct Probe {
    Index move;
    double accept_prob;
  };
  std::vector<Probe> probes;  ///< proposals that the mean acceptance was found from; of dense kernels only
  /// Where a step changes many variables (learning/transition_gradient_many.hpp). A transition is then that of one
  /// variable, whatever the others do, and there is one more coefficient, that of the mean acceptance, at the end.
  bool many = false;
  std::vector<double> sizes;            ///< |u| that the law of each variable looked at depends on
  std::vector<double> by_phi;           ///< d log q / d phi there, of every change of the variable
  std::vector<double> accept_gradient;  ///< of the mean acceptance, in phi
  double work_slope = 0.0;              ///< d log(work of a step) / d level
  double scale = 1.0;                   ///< variables over variables looked at
  double log_prob = 0.0;
};

/// Room for all entries, so that the loops over moves allocate nothing.
template <Target T>
void reserve_entries(const T& target, const TransitionGradientOptions& options, TransitionGradient& out) {
  out.entries.clear();
  out.sampled.clear();
  out.sampled.reserve(2);
  if (!options.all_moves) return;
  const Index stride = (target.num_variables() + options.max_variables - 1) / options.max_variables;
  std::size_t moves = 0;
  for (Index i = 0; i < target.num_variables(); i += stride) moves += target.cardinality(i) - 1;
  out.entries.reserve(moves);
}

/// Calls visit(position, first, end) with the moves of each variable that is looked at, and sets the scale.
template <Target T, class Visit>
void for_each_looked_at(const T& target, const TransitionGradientOptions& options, TransitionGradient& out,
                        Visit&& visit) {
  const Index variables = target.num_variables();
  const Index stride = (variables + options.max_variables - 1) / options.max_variables;
  Index position = 0, first = 0;
  for (Index i = 0; i < variables; ++i) {
    const Index end = first + target.cardinality(i) - 1;
    if (i % stride == 0) visit(position++, first, end);
    first = end;
  }
  out.scale = static_cast<double>(variables) / position;
}

/// A kernel whose balancing function can be tuned: it can be had with another function, and it can tell the transition
/// probabilities of a state and how they depend on the function. `reweigh` brings the memory of a chain up to date with
/// the function; `add_gradient` adds sum of coefficient * dT/d phi_k to out[k], `coefficients` being d objective / d T
/// of the entries first, then of the sampled moves.
template <class K, class T>
concept TunableKernel = requires(const K& kernel, const T& target, const typename T::State& state,
                                 typename K::Scratch& scratch, Rng& rng, const BalancingFunction& function,
                                 const TransitionGradientOptions& options, TransitionGradient& gradient,
                                 std::span<const double> coefficients, std::span<double> out) {
  { kernel.function() } -> std::same_as<const BalancingFunction&>;
  { kernel.with_function(function) } -> std::same_as<K>;
  kernel.reweigh(target, state, scratch);
  transition_gradient(kernel, target, state, scratch, rng, options, gradient);
  add_gradient(kernel, target, state, scratch, gradient, coefficients, out);
};

}  // namespace poise
