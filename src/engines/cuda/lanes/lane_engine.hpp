/// Gibbs with chains across lanes, on a GPU.
#pragma once

#include <poise/extend/engines/engine.hpp>
#include <poise/extend/engines/tuner.hpp>
#include "models/ising/graph_ising.hpp"
#include "models/network/markov_network.hpp"

namespace poise {

/// Of models whose layout fits (`LaneModel::fits`).
[[nodiscard]] TunableEngine make_cuda_lanes(const std::shared_ptr<const MarkovNetwork>& target,
                                            const EngineOptions& options);
[[nodiscard]] TunableEngine make_cuda_lanes(const std::shared_ptr<const GraphIsing>& target,
                                            const EngineOptions& options);

}  // namespace poise
