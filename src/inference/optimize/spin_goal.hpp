/// A model whose best state is that of an Ising problem, and the way back to states and objectives of the model.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <poise/model.hpp>
#include <poise/optimize.hpp>
#include "inference/optimize/spin_problem.hpp"

namespace poise {

struct SpinGoal {
  SpinProblem problem;
  std::vector<Spin> fixed;  ///< the spin that a variable must keep, or 0 where it is free; empty: none
  /// The state of the model that a state of the problem stands for. Where that is none of positive probability, a
  /// state that is at least as good.
  std::function<std::vector<Value>(std::span<const Spin>)> state_of;
  std::function<double(std::span<const Value>)> objective_of;  ///< as the user counts it
  std::string objective;                                       ///< what it is called
  bool maximise = true;
  bool repairs = false;  ///< whether several states of the problem may stand for the same state of the model

  [[nodiscard]] bool is_better(double a, double b) const { return maximise ? a > b : a < b; }
};

/// What is wanted of a goal: one best state, or a list of distinct ones.
enum class Wanted { one, list };

/// The goal of an Ising model, or of a network that is a hard-core model; nothing for other models, nor for a list of
/// states of a network that counts more than the size of a set. `fixed` is as in OptimizeStart. Throws InputError where
/// what is fixed leaves no state.
[[nodiscard]] std::optional<SpinGoal> spin_goal(const Model& model, Wanted wanted,
                                                const std::vector<std::optional<Value>>& fixed = {});

/// The best states of a goal: by elimination and enumeration where that solves it, by search elsewhere.
[[nodiscard]] OptimizeAnswer find_best_spins(const SpinGoal& goal, const OptimizeOptions& options,
                                             const OptimizeStart& start, const OptimizeHooks& hooks);

}  // namespace poise
