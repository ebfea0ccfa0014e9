/// Every kernel on Ising lattices.
#include <poise/run/bits_engine.hpp>
#include <poise/run/ising_bits.hpp>
#include <poise/run/samplers.hpp>
#include "engines.hpp"

namespace poise {

TunableEngine make_engine(const std::shared_ptr<const LatticeIsing>& target, const Sampler& sampler,
                          const EngineOptions& options) {
  if (is_row<GibbsRow>(sampler) && sampler.settings.block == 1) {
    return {std::make_unique<BitsEngine<LatticeIsing>>(target, bit_model(target), options), nullptr};
  }
  return make_engine<LatticeIsing>(target, sampler, options);
}

}  // namespace poise
