/// Chains of RBMs on a GPU as an engine: `gwg`, `flsb` and kin, `dlmc`, `dlsb` and `dmala`.
#pragma once

#include <optional>

#include <poise/cuda/rbm_chains.hpp>
#include <poise/run/model.hpp>
#include <poise/target/rbm.hpp>

namespace poise {

/// What a sampler's proposals are there; nothing where it does not run there.
[[nodiscard]] std::optional<CudaSlopeForm> cuda_rbm_form(const Sampler& sampler);

[[nodiscard]] TunableEngine make_cuda_rbm(const std::shared_ptr<const Rbm>& target, const Sampler& sampler,
                                          const EngineOptions& options);

}  // namespace poise
