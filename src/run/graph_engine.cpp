/// Every kernel on Ising models of any graph.
#include <poise/run/samplers.hpp>
#include <poise/target/graph_ising.hpp>
#include "engines.hpp"

namespace poise {

TunableEngine make_engine(const std::shared_ptr<const GraphIsing>& target, const Sampler& sampler,
                          const EngineOptions& options) {
  return make_engine<GraphIsing>(target, sampler, options);
}

}  // namespace poise
