/// Tempering with the replicas of all ladders across the lanes of a GPU.
#pragma once

#include <poise/lanes/lane_model.hpp>
#include <poise/run/engine.hpp>
#include <poise/run/tuner.hpp>
#include <poise/target/graph_ising.hpp>
#include <poise/target/markov_network.hpp>

namespace poise {

/// The ladders of make_tempered_lanes (run/tempered_lanes.hpp), with the same draws.
[[nodiscard]] TunableEngine make_cuda_tempered_lanes(const std::shared_ptr<const MarkovNetwork>& target,
                                                     LaneSource source, const EngineOptions& options);
[[nodiscard]] TunableEngine make_cuda_tempered_lanes(const std::shared_ptr<const GraphIsing>& target, LaneSource source,
                                                     const EngineOptions& options);

}  // namespace poise
