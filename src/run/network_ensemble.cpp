/// Every kernel on networks, and independent draws by a junction tree.
#include <poise/kernel/exact_draws.hpp>
#include <poise/network/junction_tree.hpp>
#include <poise/run/model.hpp>
#include "ensembles.hpp"

namespace poise {

std::unique_ptr<Ensemble> network_ensemble(const Network& network, const std::shared_ptr<const MarkovNetwork>& target,
                                           const Sampler& sampler, const EnsembleOptions& options) {
  if (sampler.kind != Sampler::Kind::exact) return make_ensemble<MarkovNetwork>(target, sampler, options);
  constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;
  const auto tree = std::make_shared<const JunctionTree>(
      network, plan_elimination(network), ExactOptions{.memory_limit = sampler.memory * gibibyte, .progress = {}});
  return std::make_unique<EnsembleOf<MarkovNetwork, ExactDraws>>(target, ExactDraws(tree), options);
}

}  // namespace poise
