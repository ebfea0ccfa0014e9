/// Tempering with the replicas of all ladders across the lanes of a GPU.
#pragma once

#include "engines/cpu/lanes/lane_model.hpp"
#include <poise/extend/engines/engine.hpp>
#include <poise/extend/engines/tuner.hpp>
#include "models/ising/graph_ising.hpp"
#include "models/network/markov_network.hpp"

namespace poise {

/// The ladders of make_tempered_lanes (run/tempered_lanes.hpp), with the same draws.
[[nodiscard]] TunableEngine make_cuda_tempered_lanes(const std::shared_ptr<const MarkovNetwork>& target,
                                                     LaneSource source, const EngineOptions& options);
[[nodiscard]] TunableEngine make_cuda_tempered_lanes(const std::shared_ptr<const GraphIsing>& target, LaneSource source,
                                                     const EngineOptions& options);

}  // namespace poise
