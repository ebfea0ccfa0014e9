/// An Ising lattice as the same model on a graph, for what knows graphs alone.
#pragma once

#include <memory>

#include "models/ising/graph_ising.hpp"
#include "models/ising/lattice_ising.hpp"

namespace poise {

/// Variables keep their numbers.
[[nodiscard]] std::shared_ptr<const GraphIsing> lattice_graph(const LatticeIsing& lattice);

}  // namespace poise
