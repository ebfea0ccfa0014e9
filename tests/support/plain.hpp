/// Kernels with nothing clever, everything computed anew at every step: the oracles of the tests and the yardsticks of
/// the benchmarks.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/kernels/step.hpp>
#include <poise/extend/learning/balancing_function.hpp>
#include "models/rbm/rbm.hpp"

namespace poise {

/// The oracle of LocallyBalanced: all ratios from the target, all weights summed anew, at x and at x'. It takes any
/// target, sparse or not.
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
    const double threshold = rng.uniform() * Rests(target.num_moves()).stretch;
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

/// Gibbs With Gradients on an RBM as one would write it down: no matrix products, nothing kept.
class PlainGradient {
 public:
  struct Scratch {
    explicit Scratch(const Rbm&) {}
    const char* failure = nullptr;  // what is wrong with the target, once something is
    Evals evals;
  };

  explicit PlainGradient(BalancingFunction balance) : balance_(std::move(balance)) {}

  void prepare(const Rbm&, const Rbm::State&, Scratch&) const {}

  /// Reads its random numbers as InformedProposal does, so that both make the same chain.
  StepInfo step(const Rbm& target, Rbm::State& state, Scratch& scratch, Rng& rng) const {
    const RbmWeights& weights = target.weights();
    const Look here = look(weights, state.x);
    double place = rng.uniform() * here.total;
    const double threshold = rng.uniform() * Rests(target.num_moves()).stretch;
    Index move = 0;
    while (move + 1 < here.g.size() && place >= here.g[move]) place -= here.g[move++];
    std::vector<Value> after = state.x;
    after[move] = static_cast<Value>(1 - after[move]);
    const Look there = look(weights, after);
    const double log_ratio =
        there.log_prob - here.log_prob + std::log(there.g[move] / there.total) - std::log(here.g[move] / here.total);
    if (std::isnan(log_ratio)) {
      scratch.failure = kBadLogRatio;
      return {0.0, false, 0};
    }
    const double accept_prob = std::exp(std::min(0.0, log_ratio));
    if (threshold >= accept_prob) return {accept_prob, false, 0};
    target.apply(state, {move, after[move]});
    return {accept_prob, true, 1};
  }

  template <class Visit>
  void for_each_change(const Rbm&, const Rbm::State&, const Scratch&, const StepInfo&, Visit&&) const {}

 private:
  struct Look {
    double log_prob = 0.0;
    std::vector<double> g;
    double total = 0.0;
  };

  [[nodiscard]] Look look(const RbmWeights& weights, const std::vector<Value>& x) const {
    Look out;
    std::vector<double> gradient(weights.visible_bias.begin(), weights.visible_bias.end());
    for (Index i = 0; i < weights.visible; ++i) out.log_prob += gradient[i] * x[i];
    for (Index j = 0; j < weights.hidden; ++j) {
      const float* row = weights.weights.data() + std::size_t{j} * weights.visible;
      double a = weights.hidden_bias[j];
      for (Index i = 0; i < weights.visible; ++i) a += static_cast<double>(row[i]) * x[i];
      out.log_prob += std::max(a, 0.0) + std::log1p(std::exp(-std::abs(a)));
      const double on = 1.0 / (1.0 + std::exp(-a));
      for (Index i = 0; i < weights.visible; ++i) gradient[i] += on * static_cast<double>(row[i]);
    }
    for (Index i = 0; i < weights.visible; ++i) {
      out.g.push_back(std::exp(balance_.log_g(x[i] != 0 ? -gradient[i] : gradient[i])));
      out.total += out.g.back();
    }
    return out;
  }

  BalancingFunction balance_;
};

}  // namespace poise
