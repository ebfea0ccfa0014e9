/// Every kernel on Ising models of any graph.
#include <poise/run/bits_engine.hpp>
#include <poise/run/ising_bits.hpp>
#include <poise/run/samplers.hpp>
#include <poise/target/graph_ising.hpp>
#include "engines.hpp"

namespace poise {

TunableEngine make_engine(const std::shared_ptr<const GraphIsing>& target, const Sampler& sampler,
                          const EngineOptions& options) {
  if (is_row<GibbsRow>(sampler) && sampler.settings.block == 1) {
    BitModel model = bit_model(target);
    if (BitTables::fits(model)) {
      return {std::make_unique<BitsEngine<GraphIsing>>(target, std::move(model), options), nullptr};
    }
  }
  return make_engine<GraphIsing>(target, sampler, options);
}

}  // namespace poise
