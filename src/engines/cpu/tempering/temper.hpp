/// Tempered chains of a model: across lanes where single-site Gibbs goes across lanes, rung by rung elsewhere.
#pragma once

#include <poise/model.hpp>
#include <poise/extend/engines/tuner.hpp>
#include <poise/sampler.hpp>

namespace poise {

/// What moves the replicas of `temper`: what it is told, or the usual sampler of the model.
[[nodiscard]] Sampler tempered_sampler(const Model& model, const Sampler& sampler);

/// Throws InputError where the model cannot be heated or the sampler does not fit it.
[[nodiscard]] TunableEngine make_tempered_engine(const Model& model, const Sampler& sampler,
                                                 const EngineOptions& options);

/// The same with an engine for every rung, made by any sampler from the model heated to the rung's temperature.
[[nodiscard]] TunableEngine make_rung_engines(const Model& model, const Sampler& inner, const EngineOptions& options);

}  // namespace poise
