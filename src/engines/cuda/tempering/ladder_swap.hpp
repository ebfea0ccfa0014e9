/// Swaps of a step of one ladder, as temper/ladder.hpp makes them: on a device, and on the host for tests.
///
/// A team of threads has a ladder: `rank()` of `size()` threads that `wait()` for each other.
#pragma once

#include <cmath>
#include <cstdint>

#include "engines/cuda/lanes/lane_exact.hpp"
#include "engines/cuda/common/uniform_stream.hpp"

namespace poise::cuda {

/// Numbers of all ladders as they lie in memory: by rung or by replica, [ladder][rung]; those of a pair of rungs are
/// where the lower rung's are.
struct LadderView {
  std::uint32_t ladders;
  std::uint32_t rungs;
  std::uint8_t* replica_at;      ///< of each rung
  std::uint8_t* rung_of;         ///< of each replica
  std::uint8_t* came_from_cold;  ///< of each replica: 1 on its way down, 2 on its way back up
  double* accepted;              ///< probabilities of swaps of each pair, summed
  std::uint64_t* tried;          ///< such swaps
  double* below;                 ///< sums of Bennett's ratio at the lower rung of each pair
  double* above;                 ///< and at the upper one
  std::uint64_t* bridged;        ///< steps that went into these, of each ladder
  std::uint64_t* round_trips;    ///< of each ladder
  std::uint64_t* taken;          ///< random numbers, of each ladder
  const double* guesses;         ///< of the logarithm of the ratio of normalising constants of each pair of rungs
  std::uint64_t seed;
  std::uint64_t first_stream;  ///< of the first ladder's swaps
};

// Gains, log p at the upper rung of a pair less log p at the lower one, of the replica that is at either of them. Of
// every kBridgeEvery steps one goes into the ratios of normalising constants.

/// Sums over the factors of a state: its log weight without heat, and the zeros in it.
struct ReplicaEnergy {
  double log_weight;
  double zeros;
};

/// From a rung to the next one.
struct RungStep {
  double beta;
  double log_zero;
};

/// Where log p is linear in what rungs differ in.
struct EnergyGains {
  static constexpr std::uint64_t kBridgeEvery = 4;
  const ReplicaEnergy* energies;  ///< [ladder][replica]
  const RungStep* steps;          ///< of each pair of rungs

  POISE_BOTH double at_lower(std::uint32_t pair, std::size_t replica) const {
    const RungStep step = steps[pair];
    const ReplicaEnergy energy = energies[replica];
    return sum_of_products(step.beta, energy.log_weight, step.log_zero, energy.zeros);
  }
  POISE_BOTH double at_upper(std::uint32_t pair, std::size_t replica) const { return at_lower(pair, replica); }
};

/// Of a replica: for the pair with the rung above its own, and with the one below.
struct ReplicaGain {
  double above;
  double below;
};

/// Where gains were computed for the rungs at which replicas are.
struct ReplicaGains {
  static constexpr std::uint64_t kBridgeEvery = 8;
  const ReplicaGain* gains;  ///< [ladder][replica]

  POISE_BOTH double at_lower(std::uint32_t, std::size_t replica) const { return gains[replica].above; }
  POISE_BOTH double at_upper(std::uint32_t, std::size_t replica) const { return gains[replica].below; }
};

POISE_BOTH double logistic(double t) { return 1.0 / (1.0 + exp(-t)); }

template <class Gains, class Team>
POISE_BOTH void bridge_ladder(const LadderView& view, const Gains& gains, std::uint32_t ladder, const Team& team) {
  const std::size_t first = static_cast<std::size_t>(ladder) * view.rungs;
  for (std::uint32_t pair = team.rank(); pair + 1 < view.rungs; pair += team.size()) {
    const double guess = view.guesses[pair];
    const std::size_t lower = first + view.replica_at[first + pair], upper = first + view.replica_at[first + pair + 1];
    view.below[first + pair] += logistic(gains.at_lower(pair, lower) - guess);
    view.above[first + pair] += logistic(guess - gains.at_upper(pair, upper));
  }
  if (team.rank() == 0) ++view.bridged[ladder];
}

/// Number `step` of the run.
template <class Gains, class Team>
POISE_BOTH void swap_ladder(const LadderView& view, const Gains& gains, std::uint32_t ladder, std::uint64_t step,
                            const Team& team) {
  if (step % Gains::kBridgeEvery == 0) bridge_ladder(view, gains, ladder, team);
  const std::size_t first = static_cast<std::size_t>(ladder) * view.rungs;
  const auto odd = static_cast<std::uint32_t>(step % 2);
  const std::uint32_t pairs = (view.rungs - odd) / 2;
  const UniformStream random{view.seed, view.first_stream + ladder, view.taken[ladder]};
  team.wait();  // until all have looked at the replicas of all rungs
  for (std::uint32_t k = team.rank(); k < pairs; k += team.size()) {
    const std::uint32_t pair = odd + 2 * k;
    const std::uint8_t lower = view.replica_at[first + pair];
    const std::uint8_t upper = view.replica_at[first + pair + 1];
    const double log_ratio = gains.at_lower(pair, first + lower) - gains.at_upper(pair, first + upper);
    const double probability = log_ratio < 0.0 ? exp(log_ratio) : 1.0;
    view.accepted[first + pair] += probability;
    ++view.tried[first + pair];
    if (!(uniform_at(random, k) < probability)) continue;
    view.replica_at[first + pair] = upper;
    view.replica_at[first + pair + 1] = lower;
    view.rung_of[first + upper] = static_cast<std::uint8_t>(pair);
    view.rung_of[first + lower] = static_cast<std::uint8_t>(pair + 1);
  }
  team.wait();
  if (team.rank() != 0) return;
  view.taken[ladder] += pairs;
  std::uint8_t& hot = view.came_from_cold[first + view.replica_at[first]];
  if (hot == 1) hot = 2;
  std::uint8_t& cold = view.came_from_cold[first + view.replica_at[first + view.rungs - 1]];
  if (cold == 2) ++view.round_trips[ladder];
  cold = 1;
}

}  // namespace poise::cuda
