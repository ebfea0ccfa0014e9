/// Every kernel on Ising models of any graph.
#include <poise/extend/engines/samplers.hpp>
#include "engines/cpu/bits/ising_bits.hpp"
#include "engines/cpu/chains/bonds.hpp"
#include "engines/cpu/chains/engines.hpp"
#include "engines/cpu/lanes/lane_layout.hpp"
#include "models/ising/graph_ising.hpp"

namespace poise {

TunableEngine make_engine(const std::shared_ptr<const GraphIsing>& target, const Sampler& sampler,
                          const EngineOptions& options) {
  if (moves_clusters(sampler)) return make_cluster_engine(target, bond_graph(*target), sampler, options);
  if (is_single_site_gibbs(sampler)) {
    if (BitModel model = bit_model(target); BitTables::fits(model)) {
      using Layout = BitLayout<GraphIsing>;
      return {std::make_unique<TileEngine<GraphIsing, Layout>>(target, Layout(target, std::move(model)), options),
              nullptr};
    }
    if (LaneSource source = lane_source(target); LaneModel::fits(source))
      return make_lane_engine(target, std::move(source), options);
  }
  return make_engine<GraphIsing>(target, sampler, options);
}

}  // namespace poise
