/// Systematic single-site Gibbs on any target: every variable in turn from its distribution given the rest.
///
/// Variables are visited colour by colour (no two of a colour share a blanket), as the vectorised lattice kernel does.
/// One step is one sweep over all variables.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/kernels/step.hpp>

namespace poise {

template <Target T>
class Gibbs {
 public:
  struct Scratch {
    explicit Scratch(const T& target) : first_move(first_moves(target)) {
      std::size_t most_levels = 0;
      for (Index i = 0; i < target.num_variables(); ++i) {
        if (target.cardinality(i) > 1) order.push_back(i);
        most_levels = std::max(most_levels, std::size_t{target.cardinality(i)});
      }
      changed.reserve(order.size());
      weights.reserve(most_levels);
    }
    std::vector<Index> order;       // of the variables that can change
    std::vector<Index> first_move;  // number of the first move of each variable
    std::vector<Change> changed;    // by the last step
    std::vector<double> weights;
    RaoBlackwell rao_blackwell;  // of every variable when its turn came
    bool ordered = false;
    const char* failure = nullptr;  // what is wrong with the target, once something is
    Evals evals;

    /// What the next step depends on, and what was counted.
    template <class A>
    void archive(A& archive) {
      archive(order, ordered, rao_blackwell, evals);
    }
  };

  [[nodiscard]] static Index steps_per_sweep(const T&) { return 1; }

  void prepare(const T& target, const typename T::State& state, Scratch& scratch) const {
    if constexpr (SparseTarget<T>) {
      if (!scratch.ordered) order_by_colour(target, state, scratch);
    }
    scratch.ordered = true;
    check_log_prob(target, state);
  }

  /// Probabilities of the levels of variable i given the rest, the present level included, in order of levels.
  POISE_INLINE void conditional(const T& target, const typename T::State& state, Scratch& scratch, Index i) const {
    const Index levels = target.cardinality(i);
    scratch.weights.resize(levels);
    double* weights = scratch.weights.data();
    scratch.evals.ratio += levels - 1;
    if (levels == 2) {
      const Move move = target.move_at(state, scratch.first_move[i]);
      const double log_ratio = target.log_ratio(state, move);
      const double odds = std::exp(-std::abs(log_ratio));  // of the less likely level
      const Value likely = log_ratio > 0.0 ? move.value : static_cast<Value>(1 - move.value);
      weights[likely] = 1.0 / (1.0 + odds);
      weights[1 - likely] = odds / (1.0 + odds);
      if (!is_legal(log_ratio)) scratch.failure = kBadLogRatio;
      return;
    }
    weights[target.level(state, i)] = 0.0;
    double largest = 0.0;  // log weight of the present level
    for (Index k = 0; k + 1 < levels; ++k) {
      const Move move = target.move_at(state, scratch.first_move[i] + k);
      const double log_ratio = target.log_ratio(state, move);
      weights[move.value] = log_ratio;
      if (!is_legal(log_ratio)) scratch.failure = kBadLogRatio;
      largest = std::max(largest, log_ratio);
    }
    double sum = 0.0;
    for (Index level = 0; level < levels; ++level) sum += weights[level] = std::exp(weights[level] - largest);
    for (Index level = 0; level < levels; ++level) weights[level] /= sum;
  }

  StepInfo step(const T& target, typename T::State& state, Scratch& scratch, Rng& rng) const {
    scratch.changed.clear();
    for (const Index i : scratch.order) {
      conditional(target, state, scratch, i);
      if (scratch.failure != nullptr) break;
      if (!scratch.rao_blackwell.sums.empty()) {
        double* sums = scratch.rao_blackwell.sums.data() + scratch.first_move[i];
        for (std::size_t k = 1; k < scratch.weights.size(); ++k) sums[k - 1] += scratch.weights[k];
      }
      double place = rng.uniform();
      Value level = 0;
      while (level + 1U < scratch.weights.size() && place >= scratch.weights[level]) place -= scratch.weights[level++];
      while (level > 0 && scratch.weights[level] == 0.0) --level;  // rounding may not reach the last positive weight
      const Value old = target.level(state, i);
      if (level == old) continue;
      target.apply(state, {i, level});
      scratch.changed.push_back({i, scratch.first_move[i], old});
    }
    ++scratch.rao_blackwell.count;
    return {1.0, !scratch.changed.empty(), static_cast<std::uint32_t>(scratch.changed.size())};
  }

 private:
  /// Greedy colouring: each variable gets the lowest colour that none of its blanket has.
  static void order_by_colour(const T& target, const typename T::State& state, Scratch& scratch) {
    const Index n = target.num_variables();
    std::vector<Index> colour(n, 0);
    std::vector<Index> used_by(1, n);
    for (Index i = 0; i < n; ++i) {
      if (target.cardinality(i) < 2) continue;
      target.for_each_affected(state, scratch.first_move[i], [&](const AffectedLanes& lanes) {
        for (unsigned k = 0; k < lanes.count; ++k) {
          const Index other = target.move_at(state, lanes.moves[k]).variable;
          if (other < i) used_by[colour[other]] = i;
        }
      });
      Index lowest = 0;
      while (used_by[lowest] == i) ++lowest;
      colour[i] = lowest;
      if (lowest + 1 == used_by.size()) used_by.push_back(n);
    }
    std::stable_sort(scratch.order.begin(), scratch.order.end(),
                     [&](Index a, Index b) { return colour[a] < colour[b]; });
  }
};

}  // namespace poise
