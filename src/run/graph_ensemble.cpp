/// Every kernel on Ising models of any graph.
#include <poise/run/model.hpp>
#include "ensembles.hpp"

namespace poise {

std::unique_ptr<Ensemble> graph_ensemble(const std::shared_ptr<const GraphIsing>& target, const Sampler& sampler,
                                         const EnsembleOptions& options) {
  return make_ensemble<GraphIsing>(target, sampler, options);
}

}  // namespace poise
