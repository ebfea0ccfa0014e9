/// Chains of RBMs on a GPU as an engine: `gwg`, `flsb` and kin, `dlmc`, `dlsb` and `dmala`.
#pragma once

#include <poise/model.hpp>
#include "models/rbm/rbm.hpp"
#include <poise/extend/engines/tuner.hpp>
#include <poise/sampler.hpp>

namespace poise {

[[nodiscard]] TunableEngine make_cuda_rbm(const std::shared_ptr<const Rbm>& target, const Sampler& sampler,
                                          const EngineOptions& options);

}  // namespace poise
