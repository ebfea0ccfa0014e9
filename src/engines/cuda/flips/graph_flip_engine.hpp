/// Locally balanced single flips on Ising models on graphs, and on lattices of any size, on a GPU, as an engine.
#pragma once

#include <poise/model.hpp>
#include "models/ising/graph_ising.hpp"
#include "models/ising/lattice_ising.hpp"
#include <poise/extend/engines/tuner.hpp>
#include <poise/sampler.hpp>

namespace poise {

[[nodiscard]] TunableEngine make_cuda_graph_flips(const std::shared_ptr<const GraphIsing>& target,
                                                  const Sampler& sampler, const EngineOptions& options);
/// A lattice as a graph.
[[nodiscard]] TunableEngine make_cuda_graph_flips(const std::shared_ptr<const LatticeIsing>& target,
                                                  const Sampler& sampler, const EngineOptions& options);

}  // namespace poise
