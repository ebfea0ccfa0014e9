/// Models as networks of tables, for exact inference and draws.
#pragma once

#include <memory>

#include <poise/model.hpp>
#include <poise/network.hpp>

namespace poise {

/// States up to which a model without factors, an RBM or a callback target, becomes one table of all of them: as many
/// as a few short runs evaluate.
inline constexpr double kMostTabledStates = 4096.0;

/// The product of the numbers of levels.
[[nodiscard]] double number_of_states(const Model& model);

/// The network that a model is, or one with the same distribution: Ising models have tables of single spins and pairs,
/// small RBMs and callback targets one table. Null where a model is neither. Throws InputError where tables cannot hold
/// a coupling.
[[nodiscard]] std::shared_ptr<const Network> as_network(const Model& model);

}  // namespace poise
