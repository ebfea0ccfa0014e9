/// The best state of an Ising problem of small width: variables are maximised out one after another, in tables over
/// their neighbours.
#pragma once

#include <optional>
#include <vector>

#include "inference/optimize/spin_problem.hpp"

namespace poise {

/// Nothing where the tables would take more than about a second or a hundred megabytes.
[[nodiscard]] std::optional<std::vector<Spin>> eliminate_spins(const SpinProblem& problem);

}  // namespace poise
