/// Every kernel on restricted Boltzmann machines.
#include <poise/kernel/rbm_gibbs.hpp>
#include <poise/run/model.hpp>
#include "ensembles.hpp"

namespace poise {

std::unique_ptr<Ensemble> rbm_ensemble(const std::shared_ptr<const Rbm>& target, const Sampler& sampler,
                                       const EnsembleOptions& options) {
  if (sampler.kind != Sampler::Kind::rbm_gibbs) return make_ensemble<Rbm>(target, sampler, options);
  return std::make_unique<EnsembleOf<Rbm, RbmGibbs>>(target, RbmGibbs(), options);
}

}  // namespace poise
