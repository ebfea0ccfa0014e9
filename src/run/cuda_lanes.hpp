/// Gibbs with chains across lanes, on a GPU.
#pragma once

#include <poise/run/engine.hpp>
#include <poise/run/tuner.hpp>
#include <poise/target/graph_ising.hpp>
#include <poise/target/markov_network.hpp>

namespace poise {

/// Of models whose layout fits (`LaneModel::fits`).
[[nodiscard]] TunableEngine make_cuda_lanes(const std::shared_ptr<const MarkovNetwork>& target,
                                            const EngineOptions& options);
[[nodiscard]] TunableEngine make_cuda_lanes(const std::shared_ptr<const GraphIsing>& target,
                                            const EngineOptions& options);

}  // namespace poise
