/// Weights about as training on digits leaves them: most visible units off, weights of a tenth.
#pragma once

#include <vector>

#include <poise/extend/base/rng.hpp>
#include "models/rbm/rbm_weights.hpp"

namespace poise {

inline RbmWeights random_rbm_weights(Index visible, Index hidden) {
  RbmWeights weights;
  weights.visible = visible;
  weights.hidden = hidden;
  Rng rng(3, 3);
  const auto normals = [&](std::size_t count, double mean, double sd) {
    std::vector<float> out(count);
    for (float& value : out) value = static_cast<float>(mean + sd * rng.normal());
    return out;
  };
  weights.weights = normals(std::size_t{visible} * hidden, 0.0, 0.15);
  weights.visible_bias = normals(visible, -2.0, 1.0);
  weights.hidden_bias = normals(hidden, -0.5, 0.5);
  return weights;
}

}  // namespace poise
