/// Models as networks of tables, for exact inference and draws.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <poise/model.hpp>
#include <poise/network.hpp>

namespace poise {

/// States up to which a model without factors, an RBM or a callback target, becomes one table of all of them: as many
/// as a few short runs evaluate.
inline constexpr double kMostTabledStates = 4096.0;

/// The product of the numbers of levels.
[[nodiscard]] double number_of_states(const Model& model);

/// All states, one behind the other, the last variable changing fastest, as tables have them.
[[nodiscard]] std::vector<Value> all_states(const VariableLayout& layout, std::size_t count);

/// log p of all states of an RBM, a callback target or a selection model that becomes a table; nothing for others.
[[nodiscard]] std::optional<std::vector<double>> tabled_log_probs(const Model& model);

/// The network that a model is, or one with the same distribution: Ising models have tables of single spins and pairs,
/// small RBMs and callback targets one table. Null where a model is neither. Throws InputError where tables cannot hold
/// a coupling.
[[nodiscard]] std::shared_ptr<const Network> as_network(const Model& model);

}  // namespace poise
