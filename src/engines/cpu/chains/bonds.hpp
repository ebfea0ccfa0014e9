/// Which models have clusters, those whose variables like to be alike and prefer no level, and chains that move them.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <poise/extend/engines/samplers.hpp>
#include <poise/network.hpp>
#include "kernels/cluster_kernels.hpp"
#include "kernels/clusters.hpp"
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
template <SpinGraph T>
[[nodiscard]] std::shared_ptr<const BondGraph> bond_graph(const T& target);
[[nodiscard]] std::shared_ptr<const BondGraph> bond_graph(const Network& network);

[[nodiscard]] inline bool moves_clusters(const Sampler& sampler) {
  return is_row<SwendsenWangRow>(sampler) || is_row<WolffRow>(sampler);
}

template <Target T>
TunableEngine make_cluster_engine(std::shared_ptr<const T> target, std::shared_ptr<const BondGraph> graph,
                                  const Sampler& sampler, const EngineOptions& options) {
  if (is_row<SwendsenWangRow>(sampler)) {
    return make_engine_of<T>(std::move(target), SwendsenWang<T>(std::move(graph)), options);
  }
  return make_engine_of<T>(std::move(target), Wolff<T>(std::move(graph), sampler.settings.clusters), options);
}

}  // namespace poise
