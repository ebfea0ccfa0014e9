/// Every kernel on selection models.
#include <fmt/format.h>

#include <poise/extend/engines/samplers.hpp>
#include "engines/cpu/chains/engines.hpp"
#include "kernels/weighted_gibbs.hpp"

namespace poise {

TunableEngine make_engine(const std::shared_ptr<const SelectionTarget>& target, const Sampler& sampler,
                          const EngineOptions& options) {
  if (sampler.settings.first_order) {
    throw InputError(
        fmt::format("the sampler {} takes the gradient of log p, and selection models have exact log ratios instead; "
                    "'wtgs' and 'lb' use those",
                    quote(sampler.name)));
  }
  if (is_row<WeightedGibbsRow>(sampler)) {
    return make_engine_of<SelectionTarget>(target, WeightedGibbs(sampler.settings.elsewhere), options);
  }
  return make_engine<SelectionTarget>(target, sampler, options);
}

}  // namespace poise
