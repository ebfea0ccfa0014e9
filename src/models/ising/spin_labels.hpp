/// Ising models as networks whose levels are called what draws call them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <poise/model.hpp>
#include <poise/network.hpp>
#include "models/ising/ising_model.hpp"

namespace poise {

/// Level 0 of a spin is -1 and level 1 is +1; those of zeros and ones need no names.
[[nodiscard]] inline Network labelled_network(IsingModel ising) {
  const bool spins = !ising.zero_one;
  Network network = ising_network(std::move(ising));
  if (spins) network.level_names.assign(network.num_variables(), {"-1", "1"});
  return network;
}

}  // namespace poise
