/// Locally balanced proposals with nothing clever: all ratios from the target, all weights summed anew, at x and at x'.
///
/// The oracle of the tests and the yardstick of the benchmarks for LocallyBalanced; it takes any target, sparse or not.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <poise/extend/learning/balancing_function.hpp>
#include <poise/extend/base/concepts.hpp>
#include <poise/extend/kernels/legal_numbers.hpp>

namespace poise {

template <Target T>
class PlainBalanced {
 public:
  struct Scratch {
    explicit Scratch(const T& target) : weights(target.num_moves()) {}
    std::vector<double> weights;
    const char* failure = nullptr;  // what is wrong with the target, once something is
    Evals evals;
  };

  explicit PlainBalanced(BalancingFunction balance) : balance_(std::move(balance)) {}

  void prepare(const T& target, const typename T::State& state, Scratch&) const { check_log_prob(target, state); }

  StepInfo step(const T& target, typename T::State& state, Scratch& scratch, Rng& rng) const {
    const double log_before = weigh(target, state, scratch);
    const double place = rng.uniform();
    const double threshold = rng.uniform();
    double total = 0.0;
    for (const double weight : scratch.weights) total += weight;
    if (scratch.failure != nullptr || total == 0.0) return {0.0, false, 0};  // no move leads to any probability
    double rest = place * total;
    Index index = 0;
    while (index + 1 < scratch.weights.size() && rest >= scratch.weights[index]) rest -= scratch.weights[index++];
    while (index > 0 && scratch.weights[index] == 0.0) --index;
    const Move move = target.move_at(state, index);
    const Move back = {move.variable, target.level(state, move.variable)};
    target.apply(state, move);
    const double log_after = weigh(target, state, scratch);
    const double accept_prob = scratch.failure == nullptr ? std::exp(std::min(0.0, log_before - log_after)) : 0.0;
    if (threshold < accept_prob) return {accept_prob, true, 1};
    target.apply(state, back);
    return {accept_prob, false, 0};
  }

 private:
  /// Fills the weights of all moves, relative to the largest; gives log Z. All are 0 where no move is possible.
  double weigh(const T& target, const typename T::State& state, Scratch& scratch) const {
    target.log_ratios(state, scratch.weights);
    double largest = -std::numeric_limits<double>::infinity();
    for (double& u : scratch.weights) {
      if (!is_legal(u)) scratch.failure = kBadLogRatio;
      largest = std::max(largest, u = balance_.log_g(u));
    }
    double total = 0.0;
    for (double& u : scratch.weights) {
      total += u = u == -std::numeric_limits<double>::infinity() ? 0.0 : std::exp(u - largest);
    }
    scratch.evals.ratio += scratch.weights.size();
    scratch.evals.balance += scratch.weights.size();
    return largest + std::log(total);
  }

  BalancingFunction balance_;
};

}  // namespace poise
