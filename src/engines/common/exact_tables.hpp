/// Log tables of networks and of Ising models on any graph as plain arrays of integers.
#pragma once

#include "engines/cpu/lanes/lane_image.hpp"
#include "engines/cpu/lanes/lane_model.hpp"
#include "models/ising/graph_ising.hpp"
#include "models/network/markov_network.hpp"

namespace poise {

/// Factors in the order in which the target adds them up; variables by their positions in the layout.
[[nodiscard]] ExactTables exact_tables(const MarkovNetwork& target, const LaneModel& model);
[[nodiscard]] ExactTables exact_tables(const GraphIsing& target, const LaneModel& model);

}  // namespace poise
