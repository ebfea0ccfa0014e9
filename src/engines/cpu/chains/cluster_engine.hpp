/// Chains of the samplers that move clusters, on any target that has a bond graph.
#pragma once

#include <memory>
#include <utility>

#include "kernels/swendsen_wang.hpp"
#include "kernels/wolff.hpp"
#include "engines/cpu/chains/bonds.hpp"
#include <poise/extend/engines/samplers.hpp>

namespace poise {

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
