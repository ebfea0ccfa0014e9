/// Chains of RBMs on a GPU as an engine: `gwg`, `flsb` and kin, `dlmc`, `dlsb` and `dmala`.
#pragma once

#include <poise/run/model.hpp>
#include <poise/target/rbm.hpp>
#include <poise/run/tuner.hpp>
#include <poise/run/sampler.hpp>

namespace poise {

[[nodiscard]] TunableEngine make_cuda_rbm(const std::shared_ptr<const Rbm>& target, const Sampler& sampler,
                                          const EngineOptions& options);

}  // namespace poise
