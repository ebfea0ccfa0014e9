/// Variables that do not depend on each other have the same colour, and may be updated in any order.
#pragma once

#include <vector>

#include <poise/types.hpp>

namespace poise {

/// Greedy colouring: each variable gets the lowest colour that none of its blanket has. `for_each_neighbour(i, use)`
/// calls `use` with the variables of the blanket of i, which may come more than once.
template <class ForEachNeighbour>
std::vector<Index> greedy_colours(Index variables, ForEachNeighbour&& for_each_neighbour) {
  std::vector<Index> colour(variables, 0);
  std::vector<Index> used_by(1, variables);  // of each colour, the last variable that must not have it
  for (Index i = 0; i < variables; ++i) {
    for_each_neighbour(i, [&](Index j) {
      if (j < i) used_by[colour[j]] = i;
    });
    while (used_by[colour[i]] == i) {
      if (++colour[i] == used_by.size()) used_by.push_back(variables);
    }
  }
  return colour;
}

}  // namespace poise
