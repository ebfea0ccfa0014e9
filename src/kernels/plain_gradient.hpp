/// Gibbs With Gradients on an RBM as one would write it down: everything is computed anew at every step, no matrix
/// products, nothing kept. The oracle of tests and the yardstick of benchmarks.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <poise/extend/learning/balancing_function.hpp>
#include <poise/extend/base/concepts.hpp>
#include <poise/extend/kernels/legal_numbers.hpp>
#include "models/rbm/rbm.hpp"

namespace poise {

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
    const double threshold = rng.uniform();
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
    std::vector<double> slope(weights.visible_bias.begin(), weights.visible_bias.end());
    for (Index i = 0; i < weights.visible; ++i) out.log_prob += slope[i] * x[i];
    for (Index j = 0; j < weights.hidden; ++j) {
      const float* row = weights.weights.data() + std::size_t{j} * weights.visible;
      double a = weights.hidden_bias[j];
      for (Index i = 0; i < weights.visible; ++i) a += static_cast<double>(row[i]) * x[i];
      out.log_prob += std::max(a, 0.0) + std::log1p(std::exp(-std::abs(a)));
      const double on = 1.0 / (1.0 + std::exp(-a));
      for (Index i = 0; i < weights.visible; ++i) slope[i] += on * static_cast<double>(row[i]);
    }
    for (Index i = 0; i < weights.visible; ++i) {
      out.g.push_back(std::exp(balance_.log_g(x[i] != 0 ? -slope[i] : slope[i])));
      out.total += out.g.back();
    }
    return out;
  }

  BalancingFunction balance_;
};

}  // namespace poise
