/// Which models have clusters: those whose variables like to be alike and prefer no level.
#pragma once

#include <memory>
#include <string>

#include "kernels/clusters.hpp"
#include <poise/network.hpp>
#include "models/ising/graph_ising.hpp"
#include "models/ising/lattice_ising.hpp"

namespace poise {

// What a model has that it should not have, to follow "here"; nothing where it has clusters.
[[nodiscard]] std::string lacks_clusters(const LatticeIsing& target);
[[nodiscard]] std::string lacks_clusters(const GraphIsing& target);
/// Every factor of two variables has one value where they are alike and a smaller or equal one elsewhere, as in Potts
/// models; factors of one variable are constant.
[[nodiscard]] std::string lacks_clusters(const Network& network);

// Each throws InputError with a sentence that says what a model lacks.
[[nodiscard]] std::shared_ptr<const BondGraph> bond_graph(const LatticeIsing& target);
[[nodiscard]] std::shared_ptr<const BondGraph> bond_graph(const GraphIsing& target);
[[nodiscard]] std::shared_ptr<const BondGraph> bond_graph(const Network& network);

}  // namespace poise
