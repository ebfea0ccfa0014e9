/// Learns a balancing function during warm-up: one update a round, pooled over all chains in a fixed order.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <poise/extend/learning/balancing_function.hpp>
#include <poise/extend/learning/learned_function.hpp>
#include <poise/extend/learning/learning_objective.hpp>
#include <poise/extend/learning/optimizer.hpp>
#include <poise/extend/learning/transition_gradient.hpp>

namespace poise {

/// Says when a balancing function that is being learned has stopped changing where it matters.
///
/// Compares the mean of phi over a window of rounds with that over the window before, at the ratios that chains meet:
/// every |u| counts by the probability of the transitions that have it. A change that is the same everywhere changes no
/// proposal of single changes and does not count, but with steps of many it is their length, and does.
class SettleDetector {
 public:
  static constexpr std::size_t kWindow = 40;  ///< rounds
  static constexpr double kTolerance = 0.02;  ///< root mean square change of log g

  SettleDetector();

  /// The function that a round began with and the states it was looked at in.
  void add(const BalanceTable& table, std::span<const TransitionGradient> chains);
  [[nodiscard]] bool settled() const { return settled_; }

  template <class A>
  void archive(A& archive) {
    archive(rounds_, before_, now_, frequency_, settled_, many_);
  }

 private:
  [[nodiscard]] double change() const;

  std::size_t rounds_ = 0;         // in the present window
  std::vector<double> before_;     // mean of phi over the window before; empty in the first
  std::vector<double> now_;        // sum over the present one
  std::vector<double> frequency_;  // of |u|, by grid point
  bool settled_ = false;
  bool many_ = false;  // whether steps change many variables
};

/// Keeps phi from growing wiggles at values of |u| that are rare, which every criterion would let it: a ridge on the
/// slopes of phi between 0, 1, 2, 4, 8, 16 and 32 and on their differences, and a wall where a slope beyond 1/2 would
/// make g fall. Adds the gradient to `out` (grid values) and returns the penalty.
double slope_penalty(std::span<const double> phi, double ridge, std::span<double> out);

class Learner {
 public:
  Learner(std::unique_ptr<LearnedFunction> function, const LearnOptions& options);

  [[nodiscard]] const LearningObjective& objective() const { return objective_; }
  [[nodiscard]] const LearnedFunction& function() const { return *function_; }

  /// The balancing function to make the next steps with.
  [[nodiscard]] BalancingFunction balancing_function() const { return function_->function(); }
  /// The same on the grid.
  [[nodiscard]] const BalanceTable& table() const { return *table_; }

  /// First half of a round: the states of all chains, observed at `balancing_function()`.
  void observe(std::span<const TransitionGradient> chains) { objective_.observe(chains); }

  /// Second half: the gradient in phi of every chain, as grid values. `progress` in [0, 1] is the part of learning that
  /// is over: in its second half the rate falls to a tenth and the parameters are averaged.
  void update(std::span<const TransitionGradient> chains, std::span<const std::vector<double>> gradients,
              double progress);

  /// The average of the last half of the learning, frozen.
  [[nodiscard]] BalancingFunction freeze();

  template <class A>
  void archive(A& archive) {
    std::vector<double> parameters(function_->parameters().begin(), function_->parameters().end());
    archive(parameters, objective_, optimizer_, average_, averaged_);
    std::copy(parameters.begin(), parameters.end(), function_->parameters().begin());
    table_ = function_->freeze();
  }

 private:
  std::unique_ptr<LearnedFunction> function_;
  LearningObjective objective_;
  Optimizer optimizer_;
  double ridge_;
  std::vector<double> average_;  // of the parameters
  std::size_t averaged_ = 0;
  std::shared_ptr<const BalanceTable> table_;
};

}  // namespace poise
