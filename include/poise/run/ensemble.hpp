/// A group of chains behind one virtual class: hot loops are inside, names and types stay outside.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <poise/adapt/transition_gradient.hpp>
#include <poise/balance/balancing_function.hpp>
#include <poise/kernel/rao_blackwell.hpp>
#include <poise/types.hpp>

namespace poise {

/// What an ensemble needs besides its target and kernel.
struct EnsembleOptions {
  std::uint64_t seed = 1;
  std::uint64_t first_chain = 0;           ///< number, and so random stream, of the first chain
  std::vector<std::vector<Value>> starts;  ///< one state per chain
  std::vector<Value> reference;            ///< the state that the Hamming distance is measured from
};

class Ensemble {
 public:
  virtual ~Ensemble() = default;

  [[nodiscard]] virtual std::size_t num_chains() const = 0;
  [[nodiscard]] virtual Index num_variables() const = 0;
  /// Steps that give every variable one chance to change, on average.
  [[nodiscard]] virtual std::uint64_t steps_per_sweep() const = 0;

  /// Steps that take milliseconds: between chunks of this length a run looks whether it should stop.
  [[nodiscard]] virtual std::uint64_t chunk() const {
    const std::uint64_t updates = std::uint64_t{1} << 20;
    return std::max<std::uint64_t>(1, updates * steps_per_sweep() / std::max<Index>(1, num_variables()));
  }

  /// Chains that are moved on together at most: more would not make them faster.
  [[nodiscard]] virtual std::size_t group_size() const = 0;

  // Different chains may be handled by different threads at the same time; everything below that takes a chain touches
  // that chain only.

  /// Moves `count` chains on. Several together may be faster than one by one; what they do is the same.
  virtual void advance(std::size_t first, std::size_t count, std::uint64_t steps) = 0;
  [[nodiscard]] virtual double log_prob(std::size_t chain) const = 0;
  virtual void levels(std::size_t chain, std::span<Value> out) const = 0;
  /// Puts a chain at a state and computes everything anew, as after the target has changed.
  virtual void restart(std::size_t chain, std::span<const Value> levels) = 0;
  /// Variables that differ from EnsembleOptions::reference.
  [[nodiscard]] virtual std::int64_t distance(std::size_t chain) const = 0;
  /// The model's own statistics of the present state, in the order of Model::statistics.
  virtual void statistics(std::size_t chain, std::span<double> out) const = 0;
  /// Sum of acceptance probabilities since the start.
  [[nodiscard]] virtual double accepted(std::size_t chain) const = 0;
  [[nodiscard]] virtual Evals evals(std::size_t chain) const = 0;

  /// Starts counting how long variables are at their levels.
  virtual void reset_marginals(std::size_t chain) = 0;
  /// Adds the part of steps spent at each (variable, level > 0) to `out`.
  virtual void add_marginals(std::size_t chain, std::span<double> out) = 0;

  /// Starts averaging the conditional probabilities P(variable at level | all others). Kernels that compute them anyway
  /// average them over every step; for the others `visit_rao_blackwell` adds those of the present state.
  virtual void reset_rao_blackwell(std::size_t chain) = 0;
  virtual void visit_rao_blackwell(std::size_t chain) = 0;
  [[nodiscard]] virtual const RaoBlackwell& rao_blackwell(std::size_t chain) const = 0;

  /// Whether the variable could not change now: every other level has probability zero while the rest stays.
  virtual void find_frozen(std::size_t chain, std::span<std::uint8_t> out) const = 0;

  // Learning; only for samplers that take a balancing function.

  /// `steps` is about how many steps all chains will make with it: whether tables are worth their making.
  virtual void set_function(const BalancingFunction& balance, std::uint64_t steps) = 0;
  /// Brings the weights of a chain up to date after `set_function`.
  virtual void prepare(std::size_t chain) = 0;
  virtual void transition_gradient(std::size_t chain, const TransitionGradientOptions& options,
                                   TransitionGradient& out) = 0;
  virtual void add_gradient(std::size_t chain, const TransitionGradient& transition_gradient,
                            std::span<const double> coefficients, std::span<double> out) = 0;
};

}  // namespace poise
