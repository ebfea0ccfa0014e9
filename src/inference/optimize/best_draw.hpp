/// The best state of models that are known by their log p alone.
#pragma once

#include <poise/model.hpp>
#include <poise/optimize.hpp>

namespace poise {

/// Models of up to kMostTabledStates states are enumerated. User code is annealed. For others it is replica exchange by
/// the existing engines, from the uniform distribution to the model itself; log p is looked at after every sweep.
/// Throws InputError where variables of these are fixed: they cannot be conditioned.
[[nodiscard]] OptimizeAnswer find_best_draw(const Model& model, const OptimizeOptions& options,
                                            const OptimizeStart& start, const OptimizeHooks& hooks);

}  // namespace poise
