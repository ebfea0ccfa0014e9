/// RBMs small enough to enumerate.
#pragma once

#include <algorithm>
#include <cmath>

#include <poise/extend/base/rng.hpp>
#include "models/rbm/rbm.hpp"

namespace poise::testing {

inline RbmWeights random_rbm(Index visible, Index hidden, double scale, std::uint64_t seed) {
  RbmWeights weights;
  weights.visible = visible;
  weights.hidden = hidden;
  Rng rng(seed, 9);
  for (Index k = 0; k < visible * hidden; ++k) weights.weights.push_back(static_cast<float>(scale * rng.normal()));
  for (Index i = 0; i < visible; ++i) weights.visible_bias.push_back(static_cast<float>(rng.normal()));
  for (Index j = 0; j < hidden; ++j) weights.hidden_bias.push_back(static_cast<float>(rng.normal()));
  return weights;
}

/// Weights of normal numbers, but none that RBMs refuse.
inline RbmWeights bounded_rbm(Index visible, Index hidden, double scale, std::uint64_t seed) {
  RbmWeights weights = random_rbm(visible, hidden, scale, seed);
  for (float& weight : weights.weights) weight = std::clamp(weight, -75.0F, 75.0F);
  return weights;
}

/// log p by the definition, with softplus.
inline double plain_log_prob(const RbmWeights& weights, const std::vector<Value>& x) {
  double log_p = 0.0;
  for (Index i = 0; i < weights.visible; ++i) log_p += weights.visible_bias[i] * x[i];
  for (Index j = 0; j < weights.hidden; ++j) {
    double a = weights.hidden_bias[j];
    for (Index i = 0; i < weights.visible; ++i) a += weights.weights[j * weights.visible + i] * x[i];
    log_p += std::max(a, 0.0) + std::log1p(std::exp(-std::abs(a)));
  }
  return log_p;
}

}  // namespace poise::testing
