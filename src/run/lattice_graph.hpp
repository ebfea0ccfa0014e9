/// An Ising lattice as the same model on a graph, for what knows graphs alone.
#pragma once

#include <memory>

#include <poise/target/graph_ising.hpp>
#include <poise/target/lattice_ising.hpp>

namespace poise {

/// Variables keep their numbers.
[[nodiscard]] std::shared_ptr<const GraphIsing> lattice_graph(const LatticeIsing& lattice);

}  // namespace poise
