/// Every kernel on networks, and independent draws by a junction tree.
#include <poise/extend/engines/samplers.hpp>
#include "engines/cpu/chains/bonds.hpp"
#include "engines/cpu/chains/engines.hpp"
#include "engines/cpu/lanes/lane_layout.hpp"
#include "exact/junction_tree.hpp"
#include "kernels/exact_draws.hpp"

namespace poise {

TunableEngine make_engine(const NetworkDescription& network, const Sampler& sampler, const EngineOptions& options) {
  if (moves_clusters(sampler)) {
    return make_cluster_engine(network.target, bond_graph(*network.network), sampler, options);
  }
  if (is_single_site_gibbs(sampler)) {
    LaneSource source = lane_source(network.target);
    if (LaneModel::fits(source)) return make_lane_engine(network.target, std::move(source), options);
  }
  if (!is_row<ExactRow>(sampler)) return make_engine<MarkovNetwork>(network.target, sampler, options);
  constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;
  const double limit = sampler.settings.memory * gibibyte;
  const auto tree = std::make_shared<const JunctionTree>(*network.network,
                                                         plan_elimination(*network.network, {.memory_limit = limit}),
                                                         ExactOptions{.memory_limit = limit, .progress = {}});
  return make_engine_of<MarkovNetwork>(network.target, ExactDraws(tree), options);
}

}  // namespace poise
