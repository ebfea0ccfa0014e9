/// Chains of user targets on a GPU as an engine: `gwg`, `flsb` and kin, `dlmc`, `dlsb` and `dmala`.
#pragma once

#include <string>

#include <poise/model.hpp>
#include <poise/extend/engines/tuner.hpp>
#include <poise/sampler.hpp>

namespace poise {

/// Why a sampler does not run on a user target there, as a sentence without its end; empty where it does.
[[nodiscard]] std::string why_not_on_cuda(const CallbackDescription& callback, const Sampler& sampler);

[[nodiscard]] TunableEngine make_cuda_user(const CallbackDescription& callback, const Sampler& sampler,
                                           const EngineOptions& options);

}  // namespace poise
