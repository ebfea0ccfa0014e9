/// The edges of a lattice as a list.
#pragma once

#include <vector>

#include "models/ising/ising_model.hpp"

namespace poise {

/// A torus has no edge along a side of one site and a double one along a side of two.
[[nodiscard]] std::vector<Edge> lattice_edges(const IsingModel& ising);

}  // namespace poise
