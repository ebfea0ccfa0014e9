/// Every kernel on networks.
#include <poise/extend/engines/samplers.hpp>
#include "engines/cpu/chains/bonds.hpp"
#include "engines/cpu/chains/engines.hpp"
#include "engines/cpu/lanes/lane_layout.hpp"

namespace poise {

TunableEngine make_engine(const NetworkDescription& network, const Sampler& sampler, const EngineOptions& options) {
  if (moves_clusters(sampler)) {
    return make_cluster_engine(network.target, bond_graph(*network.network), sampler, options);
  }
  if (is_single_site_gibbs(sampler)) {
    LaneSource source = lane_source(network.target);
    if (LaneModel::fits(source)) return make_lane_engine(network.target, std::move(source), options);
  }
  return make_engine<MarkovNetwork>(network.target, sampler, options);
}

}  // namespace poise
