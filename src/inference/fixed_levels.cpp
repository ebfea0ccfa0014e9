/// Fixed levels become evidence.
#include "inference/fixed_levels.hpp"

#include <fmt/format.h>

namespace poise {

Network with_fixed_levels(Network network, const std::vector<std::optional<Value>>& fixed) {
  if (fixed.empty()) return network;
  const Index n = network.num_variables();
  if (fixed.size() != n) {
    throw InputError(
        fmt::format("variables to fix: found a list of {}, expected one of the {} of the model", fixed.size(), n));
  }
  if (network.observed.empty()) network.observed.assign(n, Network::kFree);
  for (Index i = 0; i < n; ++i) {
    if (!fixed[i]) continue;
    const Index level = *fixed[i];
    if (level >= network.cardinalities[i]) {
      throw InputError(fmt::format("{} is fixed at level {}, expected one below {}", network.variable_name(i), level,
                                   network.cardinalities[i]));
    }
    if (network.is_observed(i) && network.observed[i] != level) {
      throw InputError(fmt::format("{} is fixed at level {} and observed at level {}", network.variable_name(i), level,
                                   network.observed[i]));
    }
    network.observed[i] = level;
  }
  return network;
}

}  // namespace poise
