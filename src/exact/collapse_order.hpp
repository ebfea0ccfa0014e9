/// The order in which variables are summed out of a network while tables stay small.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "models/network/tables.hpp"

namespace poise::exact {

struct CollapseLimits {
  double most_entries;  ///< of the table of a variable with all its neighbours
  double most_in_all;   ///< entries of all such tables together
  std::size_t trials;   ///< orders at most
};

/// Variables to sum out, one after another: of many greedy orders, some choices left to chance, the one that leaves the
/// fewest configurations. Only variables of the scopes are in it. The chance has a seed of its own and effort is
/// counted: the same network gives the same order; a small one gets all its trials, one of 10^5 variables a few.
[[nodiscard]] std::vector<Index> collapse_order(const Scopes& scopes, std::span<const Index> levels,
                                                const CollapseLimits& limits);

}  // namespace poise::exact
