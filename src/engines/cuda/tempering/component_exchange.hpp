/// Exchange of components between the states that two ladders have at one rung, as lanes/components.hpp makes it: on a
/// device, and on the host for tests.
///
/// A team of threads has two ladders: beside what the team of a ladder can do it says whether `any` of its threads
/// found something, and how many of those `before` a thread did.
#pragma once

#include <cstdint>

#include "engines/cuda/tempering/ladder_swap.hpp"

namespace poise::cuda {

struct ComponentsView {
  const std::uint32_t* start;  ///< of each position's neighbours, and one more
  const std::uint32_t* neighbours;
  std::uint32_t positions;
  std::uint8_t* levels;  ///< [position][lane]
  std::uint32_t lanes;
  // Of each two ladders.
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
