/// Every kernel on Ising lattices.
#include <poise/kernel/lattice_gibbs.hpp>
#include <poise/run/model.hpp>
#include "ensembles.hpp"

namespace poise {

std::unique_ptr<Ensemble> lattice_ensemble(const std::shared_ptr<const LatticeIsing>& target, const Sampler& sampler,
                                           const EnsembleOptions& options) {
  if (sampler.kind != Sampler::Kind::gibbs || !LatticeGibbs::fits(*target)) {
    return make_ensemble<LatticeIsing>(target, sampler, options);
  }
  return std::make_unique<EnsembleOf<LatticeIsing, LatticeGibbs>>(target, LatticeGibbs(), options);
}

}  // namespace poise
