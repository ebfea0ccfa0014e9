/// The order in which variables are summed out of a network while tables stay small.
#pragma once

#include <span>
#include <vector>

#include <poise/network/hosts.hpp>

namespace poise::exact {

struct CollapseLimits {
  double most_entries;  ///< of the table of a variable with all its neighbours
  double most_in_all;   ///< entries of all such tables together
};

/// Variables to sum out, one after another: of a few greedy orders the one that leaves the fewest configurations. Only
/// variables of the scopes are in it. Deterministic; effort is counted, so a network of a million variables gets one
/// greedy order and a small one all of them.
[[nodiscard]] std::vector<Index> collapse_order(const Scopes& scopes, std::span<const Index> levels,
                                                const CollapseLimits& limits);

}  // namespace poise::exact
