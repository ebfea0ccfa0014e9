/// Gains of replicas of an RBM, as Rbm::log_prob_change computes them: on a device, and on the host for tests.
#pragma once

#include <cmath>
#include <cstdint>

#include "engines/cuda/tempering/ladder_swap.hpp"

namespace poise::cuda {

/// Inverse temperatures of the rung that a replica is at and of its neighbours; at the ends of the ladder the rung is
/// its own neighbour, and the gain 0.
struct NeighbourBetas {
  double below;
  double own;
  double above;
};

POISE_BOTH NeighbourBetas neighbour_betas(const double* betas, std::uint32_t rungs, std::uint32_t rung) {
  return {betas[rung > 0 ? rung - 1 : 0], betas[rung], betas[rung + 1 < rungs ? rung + 1 : rung]};
}

/// Hidden units are summed out: softplus(x) = max(x, 0) + log(1 + e^-|x|), of which hundreds of factors from 1 to 2 can
/// be multiplied before a logarithm is due: takes up to a thousand units.
struct HiddenGain {
  double below = 0.0, own = 0.0, above = 0.0;
  double below_factor = 1.0, own_factor = 1.0, above_factor = 1.0;

  /// Of a unit that has the activation `a` at beta = 1 and `base` at beta = 0.
  POISE_BOTH void add(const NeighbourBetas& betas, double a, double base) {
    add(betas.below * a + (1.0 - betas.below) * base, below, below_factor);
    add(betas.own * a + (1.0 - betas.own) * base, own, own_factor);
    add(betas.above * a + (1.0 - betas.above) * base, above, above_factor);
  }
  [[nodiscard]] POISE_BOTH ReplicaGain gain() const {
    return {above - own + log(above_factor / own_factor), own - below + log(own_factor / below_factor)};
  }

 private:
  POISE_BOTH static void add(double x, double& positive, double& factor) {
    positive += fmax(x, 0.0);
    factor *= 1.0 + exp(-fabs(x));
  }
};

/// Of the visible units that are on: `linear` is the sum of their biases less those of the hot end.
POISE_BOTH ReplicaGain visible_gain(const NeighbourBetas& betas, double linear) {
  return {(betas.above - betas.own) * linear, (betas.own - betas.below) * linear};
}

}  // namespace poise::cuda
