/// Engines on a GPU.
#pragma once

#include <poise/run/model.hpp>

namespace poise {

/// Throws an InputError where no GPU can be used, or where this sampler of this model does not run on one.
TunableEngine make_cuda_engine(const Model& model, const Sampler& sampler, const EngineOptions& options);

/// Where so many chains run faster, with so many threads on the CPU.
[[nodiscard]] Device faster_device(const Model& model, const Sampler& sampler, std::size_t chains, unsigned threads);

}  // namespace poise
