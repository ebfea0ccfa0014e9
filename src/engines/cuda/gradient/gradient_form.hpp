/// Which samplers propose from slopes on a GPU, on RBMs and on user targets.
#pragma once

#include <optional>

#include "engines/cuda/gradient/gradient_chains.hpp"
#include <poise/extend/engines/samplers.hpp>

namespace poise {

/// What a sampler's proposals are there; nothing where it does not run there.
[[nodiscard]] inline std::optional<CudaSlopeForm> cuda_slope_form(const Sampler& sampler) {
  if (is_row<DlmcRow>(sampler) || is_row<DlsbRow>(sampler)) return CudaSlopeForm::relaxation;
  if (is_row<DmalaRow>(sampler)) return CudaSlopeForm::langevin;
  const SamplerSettings& settings = sampler.settings;
  if (!is_balanced(sampler) || settings.many || !settings.first_order || settings.block != 1) return {};
  return CudaSlopeForm::single;
}

}  // namespace poise
