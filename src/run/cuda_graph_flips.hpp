/// Locally balanced single flips on Ising models on graphs, and on lattices of any size, on a GPU, as an engine.
#pragma once

#include <poise/run/model.hpp>
#include <poise/target/graph_ising.hpp>
#include <poise/target/lattice_ising.hpp>
#include <poise/run/tuner.hpp>
#include <poise/run/sampler.hpp>

namespace poise {

[[nodiscard]] TunableEngine make_cuda_graph_flips(const std::shared_ptr<const GraphIsing>& target,
                                                  const Sampler& sampler, const EngineOptions& options);
/// A lattice as a graph.
[[nodiscard]] TunableEngine make_cuda_graph_flips(const std::shared_ptr<const LatticeIsing>& target,
                                                  const Sampler& sampler, const EngineOptions& options);

}  // namespace poise
