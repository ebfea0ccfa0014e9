/// What is worked out from the chains when a run is over.
#pragma once

#include <poise/extend/engines/engine.hpp>
#include <poise/run.hpp>
#include <poise/sampler.hpp>

namespace poise {

/// The balancing function on its grid.
void add_function(const Sampler& sampler, const BalancingFunction& function, RunResult& result);

/// Empirical and Rao-Blackwellised marginals, frozen variables, the best value of an objective function.
void add_marginals(const Model& model, const Engine& engine, RunResult& result);

}  // namespace poise
