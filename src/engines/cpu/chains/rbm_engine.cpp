/// Every kernel on RBMs.
#include <poise/extend/engines/samplers.hpp>
#include "engines/cpu/chains/engines.hpp"
#include "kernels/rbm_gibbs.hpp"

namespace poise {

TunableEngine make_engine(const std::shared_ptr<const Rbm>& target, const Sampler& sampler,
                          const EngineOptions& options) {
  if (is_row<RbmGibbsRow>(sampler)) return make_engine_of<Rbm>(target, RbmGibbs(*target), options);
  return make_engine<Rbm>(target, sampler, options);
}

}  // namespace poise
