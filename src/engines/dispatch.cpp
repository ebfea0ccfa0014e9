/// Which engine a model and a sampler get.
#include "engines/dispatch.hpp"

#include <poise/extend/engines/samplers.hpp>
#include "engines/cuda/cuda_engine.hpp"
#include "engines/cpu/chains/engines.hpp"
#include "engines/cpu/tempering/temper.hpp"

namespace poise {

TunableEngine make_engine(const std::shared_ptr<const OwnDescription>& target, const Sampler& sampler,
                          const EngineOptions& options) {
  return target->make_engine(sampler, options);
}

TunableEngine make_engine(const Model& model, const Sampler& sampler, const EngineOptions& options) {
  if (options.device == Device::cuda) return make_cuda_engine(model, sampler, options);
  if (is_row<TemperRow>(sampler)) return make_tempered_engine(model, sampler, options);
  return std::visit([&](const auto& description) { return make_engine(description, sampler, options); },
                    model.description);
}

}  // namespace poise
