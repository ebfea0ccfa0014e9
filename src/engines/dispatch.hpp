/// From a model and a sampler to the engine that runs them, on the device that suits them.
#pragma once

#include <cstddef>

#include <poise/devices.hpp>
#include <poise/extend/engines/engine.hpp>
#include <poise/model.hpp>
#include <poise/sampler.hpp>
#include <poise/extend/engines/tuner.hpp>

namespace poise {

/// Chains of a sampler on a model.
[[nodiscard]] TunableEngine make_engine(const Model& model, const Sampler& sampler, const EngineOptions& options);

/// Where so many chains run faster, with so many threads on the CPU.
[[nodiscard]] Device faster_device(const Model& model, const Sampler& sampler, std::size_t chains, unsigned threads);
/// Throws an InputError where no GPU can be used, or where this sampler of this model does not run on one.
void require_cuda(const Model& model, const Sampler& sampler);

}  // namespace poise
