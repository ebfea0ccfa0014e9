/// Block Gibbs on RBMs on a GPU as an engine.
#pragma once

#include <poise/model.hpp>
#include "models/rbm/rbm.hpp"
#include <poise/extend/engines/tuner.hpp>
#include <poise/sampler.hpp>

namespace poise {

/// Whether the sampler is `rbm-gibbs` and the RBM is not too large.
[[nodiscard]] bool has_cuda_rbm_gibbs(const Rbm& target, const Sampler& sampler);

[[nodiscard]] TunableEngine make_cuda_rbm_gibbs(const std::shared_ptr<const Rbm>& target, const EngineOptions& options);

}  // namespace poise
