/// The most probable states of a network: proved by max-product where that fits, found by search and bounded elsewhere.
#pragma once

#include <poise/network.hpp>
#include <poise/optimize.hpp>

namespace poise {

/// The objective is log_prob, the natural logarithm of the product of all tables at a state that agrees with the
/// evidence; it is maximised. `network` is that of `model`. Variables that `start` fixes count as evidence.
[[nodiscard]] OptimizeAnswer find_best_of_network(const Model& model, const Network& network,
                                                  const OptimizeOptions& options, const OptimizeStart& start = {},
                                                  const OptimizeHooks& hooks = {});

}  // namespace poise
