/// Every kernel on callback targets.
#include <fmt/format.h>

#include <poise/extend/engines/samplers.hpp>
#include "engines/cpu/chains/engines.hpp"
#include "models/user/batch_target.hpp"

namespace poise {

TunableEngine make_engine(const CallbackDescription& callback, const Sampler& sampler, const EngineOptions& options) {
  if (sampler.settings.first_order && !callback.target->function().has_gradient()) {
    throw InputError(
        fmt::format("the sampler '{}' needs the gradient of log p, and this target has none", sampler.name));
  }
  return make_engine<BatchTarget>(callback.target, sampler, options);
}

}  // namespace poise
