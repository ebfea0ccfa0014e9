/// Chains from elsewhere, beside those of a run: they show modes that no chain of the run is in.
#pragma once

#include <cstdint>

#include <poise/model.hpp>
#include <poise/run.hpp>
#include <poise/sampler.hpp>
#include "diagnose/model_checks.hpp"

namespace poise {

/// The part of the work of a run that chains from elsewhere take, and of its seconds, where these are limited.
constexpr double kElsewhere = 0.1;
constexpr double kElsewhereOfSeconds = 0.04;

/// Whether a run has them: of user code, by a local sampler. `auto` has watched others before it kept one, so it has
/// them only if a variable never changed.
[[nodiscard]] inline bool looks_elsewhere(const Model& model, const Sampler& sampler, bool is_chosen,
                                          bool has_constant) {
  return model.fibers() != nullptr && !sampler.tempers() && (!is_chosen || has_constant);
}

/// Chains may all be in the same one of several modes, and then agree with each other. A few others are cooled, warmed
/// again and moved on, for a part of the `work` of the run, in updates of single variables, and of its calls.
void add_elsewhere(const Model& model, const CheckedStates& states, std::uint64_t work, RunResult& result);

}  // namespace poise
