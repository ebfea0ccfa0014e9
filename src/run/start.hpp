/// Where chains begin, and the state that the Hamming distance is measured from: both by seed and chain alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <poise/extend/engines/division.hpp>
#include <poise/extend/engines/engine.hpp>
#include <poise/model.hpp>
#include <poise/run.hpp>

namespace poise {

/// Every free variable at a level drawn uniformly, observed ones where they are.
[[nodiscard]] std::vector<Value> uniform_state(const Model& model, Rng& rng);

/// Whether chains must begin inside the support, or find it by themselves as tempered ones do.
enum class FirstStates { possible, any };

/// What makes the chains of a run, or those of this rank where they are divided: a starting state for each, others to
/// try where one has probability zero, and the reference. A rank without chains gets the first one, to know the others
/// by. Throws InputError where no state of positive probability can be found.
[[nodiscard]] EngineOptions engine_options(const Model& model, const RunOptions& options,
                                           FirstStates states = FirstStates::possible,
                                           std::shared_ptr<const Division> division = nullptr);

}  // namespace poise
