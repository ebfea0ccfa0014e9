/// The best state of an Ising problem of small width: variables are maximised out one after another, in tables over
/// their neighbours.
#pragma once

#include <optional>
#include <vector>

#include "inference/optimize/spin_problem.hpp"

namespace poise {

/// Entries of all tables together that take a second, roughly.
inline constexpr double kEntriesPerSecond = 5e7;
/// Most entries of all tables: a quarter of a gibibyte, if all were there at once.
inline constexpr double kMostEntries = 0x1p25;

/// Nothing where no order is found whose tables have at most `most_entries` together.
[[nodiscard]] std::optional<std::vector<Spin>> eliminate_spins(const SpinProblem& problem,
                                                               double most_entries = kMostEntries);

}  // namespace poise
