/// Tempering of RBMs on a GPU, with the replicas of all ladders in one set of chains.
#pragma once

#include <poise/model.hpp>
#include <poise/extend/engines/tuner.hpp>

namespace poise {

/// The ladders of make_rung_engines (temper.hpp) with `rbm-gibbs` at every rung, with the same draws.
[[nodiscard]] TunableEngine make_cuda_tempered_rbm(const Model& model, const EngineOptions& options);

}  // namespace poise
