/// The most probable states of a network, exactly, by max-product on the junction tree or on one for each slice.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <poise/network.hpp>
#include "exact/exact_inference.hpp"

namespace poise {

/// A state, and the natural logarithm of the product of all factors there.
struct RankedState {
  double log_value = 0.0;
  std::vector<Index> levels;  ///< of all variables, observed ones included

  /// Best first. States of equal value are in lexicographic order.
  friend bool operator<(const RankedState& a, const RankedState& b) {
    return a.log_value != b.log_value ? a.log_value > b.log_value : a.levels < b.levels;
  }
};

/// The natural logarithm of the product of all factors at a state; minus infinity where a factor is zero.
[[nodiscard]] double log_value(const Network& network, std::span<const Index> levels);

/// The `count` most probable states, best first; fewer where fewer have positive probability. Of states with the same
/// value the choice at the end of the list is arbitrary, but always the same one, for any number of threads. A plan of
/// `network` takes less memory and less than half of the time that it states, because nothing is handed out.
///
/// Throws InputError where the plan exceeds the memory, and where no state has positive probability; ExactStopped when
/// told to.
[[nodiscard]] std::vector<RankedState> most_probable_states(const Network& network, const ExactPlan& plan,
                                                            std::size_t count, const ExactOptions& options = {});

}  // namespace poise
