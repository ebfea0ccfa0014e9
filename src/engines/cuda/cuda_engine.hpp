/// Engines on a GPU.
#pragma once

#include <poise/model.hpp>
#include <poise/extend/engines/tuner.hpp>
#include <poise/sampler.hpp>

namespace poise {

/// Throws what `require_cuda` of run/model.hpp does.
TunableEngine make_cuda_engine(const Model& model, const Sampler& sampler, const EngineOptions& options);

}  // namespace poise
