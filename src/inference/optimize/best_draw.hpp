/// The best state that chains come across, for models that are known by their log p alone.
#pragma once

#include <poise/model.hpp>
#include <poise/optimize.hpp>

namespace poise {

/// Replica exchange by the existing engines, from the uniform distribution to the model itself; log p is looked at
/// after every sweep. Throws InputError where variables are fixed: user targets and RBMs cannot be conditioned.
[[nodiscard]] OptimizeAnswer find_best_draw(const Model& model, const OptimizeOptions& options,
                                            const OptimizeStart& start, const OptimizeHooks& hooks);

}  // namespace poise
