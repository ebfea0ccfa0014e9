/// Chains of RBMs on a GPU as an engine: `gwg`, `flsb` and kin, `dlmc`, `dlsb` and `dmala`.
#include "engines/cuda/engines.hpp"

#include <algorithm>
#include <utility>

#include <poise/extend/engines/samplers.hpp>
#include "engines/cpu/chains/engines.hpp"
#include "engines/cuda/common/chains_engine.hpp"
#include "engines/cuda/gradient/gradient_form.hpp"
#include "engines/cuda/rbm/rbm_chains.hpp"
#include "models/rbm/rbm.hpp"

namespace poise {

namespace {

class CudaRbmEngine final : public CudaChainsEngine<Rbm, CudaRbmChains> {
 public:
  CudaRbmEngine(const std::shared_ptr<const Rbm>& target, CudaGradientForm form, const BalancingFunction& function,
                const EngineOptions& options)
      : CudaChainsEngine(traits_for(*target, form, options), target,
                         std::make_unique<CudaRbmChains>(target->weights(), form, options.starts.size(), options.seed,
                                                         options.first_chain)) {
    set_function(function);
    chains().set_reference(options.reference);
    for (std::size_t c = 0; c < options.starts.size(); ++c) chains().set_levels(c, options.starts[c]);
  }

 private:
  static EngineTraits traits_for(const Rbm& target, CudaGradientForm form, const EngineOptions& options) {
    EngineTraits traits = traits_of(target, options);
    traits.steps_per_sweep = form == CudaGradientForm::single ? target.num_moves() : 1;
    traits.chunk = 256;
    return traits;
  }

  void use_function(const BalancingFunction& function) override { chains().set_function(function); }

  void observe_states(ChainGroup group, const Observables& out) const override {
    const CudaRbmChains::Sums sums = chains().sums();
    for (std::size_t k = 0; k < group.count; ++k) {
      const std::size_t c = group.first + k;
      if (!out.log_prob.empty()) out.log_prob[k] = sums.log_prob[c];
      if (!out.statistics.empty()) out.statistics[k] = static_cast<double>(sums.on[c]);
      if (!out.distance.empty()) out.distance[k] = sums.different[c];
    }
  }

  [[nodiscard]] Evals evals() const override {
    Evals evals;
    evals.target = 1;
    evals.gradient = chains().steps() + 1;
    evals.balance = evals.gradient * traits_.entries;
    return evals;
  }
};

}  // namespace

TunableEngine make_cuda_rbm(const Model& model, const Sampler& sampler, const EngineOptions& options) {
  const auto& target = std::get<std::shared_ptr<const Rbm>>(model.description);
  const BalancingFunction function(sampler.settings.function, sampler.settings.level);
  auto engine = std::make_unique<CudaRbmEngine>(target, *cuda_gradient_form(sampler), function, options);
  auto tuner = make_cuda_tuner(*engine, target, sampler, options);
  return {std::move(engine), std::move(tuner)};
}

}  // namespace poise
