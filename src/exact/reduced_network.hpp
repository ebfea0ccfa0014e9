/// A network without the variables and levels that evidence and zeros settle, and the way back to its states.
#pragma once

#include <span>
#include <vector>

#include <poise/network.hpp>

namespace poise {

/// Levels that propagation of zeros rules out have probability zero, so the states of positive probability are those of
/// the reduced network, with the same products but for `log_constant`. Tables over variables with fewer levels are
/// smaller, and so are the tables of elimination.
struct ReducedNetwork {
  Network network;              ///< nothing is observed, every variable has two levels or more
  std::vector<Index> kept;      ///< the variable of the original network for each variable
  std::vector<Index> level_of;  ///< the original level of a level, at level_start[variable] + level
  std::vector<std::size_t> level_start;
  std::vector<Index> settled;  ///< the level of all variables that are not kept; 0 for the rest
  double log_constant = 0.0;   ///< of the factors that depend on nothing

  /// Throws InputError where propagation finds that no state has positive probability.
  explicit ReducedNetwork(const Network& original);

  /// Levels of all variables of the original network.
  [[nodiscard]] std::vector<Index> original_state(std::span<const Index> levels) const;
  /// The levels of the reduced network that come closest to levels of the original one: ruled-out levels become 0.
  [[nodiscard]] std::vector<Index> reduced_state(std::span<const Index> original_levels) const;
};

}  // namespace poise
