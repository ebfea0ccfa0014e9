/// Which samplers propose from gradients on a GPU, on RBMs and on user targets.
#pragma once

#include <optional>

#include <poise/extend/engines/samplers.hpp>
#include "engines/cuda/gradient/gradient_chains.hpp"

namespace poise {

/// What a sampler's proposals are there; nothing where it does not run there.
[[nodiscard]] inline std::optional<CudaGradientForm> cuda_gradient_form(const Sampler& sampler) {
  if (is_row<DlmcRow>(sampler) || is_row<DlsbRow>(sampler)) return CudaGradientForm::relaxation;
  if (is_row<DmalaRow>(sampler)) return CudaGradientForm::langevin;
  const SamplerSettings& settings = sampler.settings;
  if (!is_balanced(sampler) || settings.many || !settings.first_order || settings.block != 1) return {};
  return CudaGradientForm::single;
}

}  // namespace poise
