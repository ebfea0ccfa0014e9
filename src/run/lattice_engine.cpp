/// Every kernel on Ising lattices.
#include <poise/kernel/lattice_gibbs.hpp>
#include <poise/run/samplers.hpp>
#include "engines.hpp"

namespace poise {

TunableEngine make_engine(const std::shared_ptr<const LatticeIsing>& target, const Sampler& sampler,
                          const EngineOptions& options) {
  if (is_row<GibbsRow>(sampler) && sampler.settings.block == 1 && LatticeGibbs::fits(*target)) {
    return make_engine_of<LatticeIsing>(target, LatticeGibbs(*target), options);
  }
  return make_engine<LatticeIsing>(target, sampler, options);
}

}  // namespace poise
