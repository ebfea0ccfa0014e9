/// Every kernel on Ising models of any graph.
#include <poise/run/cluster_engine.hpp>
#include <poise/run/ising_bits.hpp>
#include <poise/run/lane_layout.hpp>
#include <poise/run/samplers.hpp>
#include <poise/target/graph_ising.hpp>
#include "engines.hpp"

namespace poise {

TunableEngine make_engine(const std::shared_ptr<const GraphIsing>& target, const Sampler& sampler,
                          const EngineOptions& options) {
  if (moves_clusters(sampler)) return make_cluster_engine(target, bond_graph(*target), sampler, options);
  if (is_single_site_gibbs(sampler)) {
    if (BitModel model = bit_model(target); BitTables::fits(model)) {
      using Layout = BitLayout<GraphIsing>;
      return {std::make_unique<BlockEngine<GraphIsing, Layout>>(target, Layout(target, std::move(model)), options),
              nullptr};
    }
    if (LaneSource source = lane_source(target); LaneModel::fits(source))
      return make_lane_engine(target, std::move(source), options);
  }
  return make_engine<GraphIsing>(target, sampler, options);
}

}  // namespace poise
