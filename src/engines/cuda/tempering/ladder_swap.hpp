/// Swaps of a step of one ladder, as poise/extend/engines/ladder.hpp makes them, and exchange of components between
/// two: on a device, and on the host for tests.
///
/// A team of threads has a ladder: `rank()` of `size()` threads that `wait()` for each other.
#pragma once

#include <cmath>
#include <cstdint>

#include "engines/common/host_device.hpp"
#include "engines/cuda/lanes/lane_chains.hpp"

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

/// The gains of a replica: for the pair with the rung above its own, and with the one below.
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

// Gains of replicas of an RBM, as Rbm::log_prob_change computes them.

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

  /// Adds a unit that has the activation `a` at beta = 1 and `base` at beta = 0.
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

/// The gain of the visible units that are on: `linear` is the sum of their biases less those of the hot end.
POISE_BOTH ReplicaGain visible_gain(const NeighbourBetas& betas, double linear) {
  return {(betas.above - betas.own) * linear, (betas.own - betas.below) * linear};
}

// Exchange of components between the states that two ladders have at one rung, as engines/common/components.hpp
// makes it. A team has two ladders: beside what the team of a ladder can do it says whether `any` of its threads
// found something, and how many of those `before` a thread did.

struct ComponentsView {
  const std::uint32_t* start;  ///< of each position's neighbours, and one more
  const std::uint32_t* neighbours;
  std::uint32_t positions;
  std::uint8_t* levels;  ///< [position][lane]
  std::uint32_t lanes;
  // What each two ladders have.
  std::uint32_t* labels;       ///< [position]: room to work in
  std::uint8_t* chosen;        ///< [position]: the same
  std::uint64_t* components;   ///< [rung]: that were found
  std::uint64_t* tried;        ///< [rung]
  const std::uint8_t* is_off;  ///< [rung]: where states differ in one component as a rule
  std::uint64_t* taken;        ///< random numbers
  std::uint64_t seed;
  std::uint64_t first_stream;  ///< of the first two ladders; the next two are two further on
};

constexpr std::uint32_t kSame = 0xffffffffU;  ///< label of what two states have in common

/// Labels what differs by the first position of its component.
template <class Team>
POISE_BOTH void label_components(const ComponentsView& view, std::uint32_t* labels, const Team& team) {
  for (bool changed = true; changed;) {
    team.wait();
    bool mine = false;
    for (std::uint32_t k = team.rank(); k < view.positions; k += team.size()) {
      const std::uint32_t before = labels[k];
      if (before == kSame) continue;
      std::uint32_t least = labels[before];  // a label is a position of the same component
      for (std::uint32_t n = view.start[k]; n < view.start[k + 1]; ++n) {
        const std::uint32_t label = labels[view.neighbours[n]];
        if (label < least) least = label;  // that of what is the same is the largest
      }
      if (least >= before) continue;
      labels[k] = least;
      mine = true;
    }
    changed = team.any(mine);
  }
}

/// Between ladders 2 `two` and 2 `two` + 1, at a rung.
template <class Team>
POISE_BOTH void exchange_components(const ComponentsView& view, const LadderView& ladders, std::uint32_t two,
                                    std::uint32_t rung, const Team& team) {
  const std::size_t at_rung = static_cast<std::size_t>(two) * ladders.rungs + rung;
  if (view.is_off[at_rung] != 0) return;
  const auto lane_of = [&](std::uint32_t ladder) {
    const std::size_t first = static_cast<std::size_t>(ladder) * ladders.rungs;
    return first + ladders.replica_at[first + rung];
  };
  std::uint8_t* const first = view.levels + lane_of(2 * two);
  std::uint8_t* const second = view.levels + lane_of(2 * two + 1);
  std::uint32_t* const labels = view.labels + static_cast<std::size_t>(two) * view.positions;
  std::uint8_t* const chosen = view.chosen + static_cast<std::size_t>(two) * view.positions;
  for (std::uint32_t k = team.rank(); k < view.positions; k += team.size()) {
    const std::size_t row = static_cast<std::size_t>(k) * view.lanes;
    labels[k] = first[row] != second[row] ? k : kSame;
  }
  label_components(view, labels, team);
  // Components in the order of their first positions, a random number each.
  const UniformStream random{view.seed, view.first_stream + 2 * static_cast<std::uint64_t>(two), view.taken[two]};
  std::uint32_t found = 0;
  for (std::uint32_t begin = 0; begin < view.positions; begin += team.size()) {
    const std::uint32_t k = begin + team.rank();
    const bool is_first = k < view.positions && labels[k] == k;
    std::uint32_t all = 0;
    const std::uint32_t number = found + team.before(is_first, all);
    if (is_first) chosen[k] = uniform_at(random, number) < 0.5 ? 0 : 1;
    found += all;
  }
  team.wait();
  for (std::uint32_t k = team.rank(); k < view.positions; k += team.size()) {
    if (labels[k] == kSame || chosen[labels[k]] == 0) continue;
    const std::size_t row = static_cast<std::size_t>(k) * view.lanes;
    const std::uint8_t level = first[row];
    first[row] = second[row];
    second[row] = level;
  }
  if (team.rank() != 0) return;
  view.taken[two] += found;
  view.components[at_rung] += found;
  ++view.tried[at_rung];
}

}  // namespace poise::cuda
