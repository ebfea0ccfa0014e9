/// The best states of a small Ising problem, by looking at all of them.
#pragma once

#include "inference/optimize/free_flips.hpp"
#include "inference/optimize/search_record.hpp"

namespace poise {

/// Problems of up to so many variables are enumerated: a few million states at most.
inline constexpr Index kMostEnumeratedSpins = 22;

/// Adds the best states to the record, one of all that the flips lead to; those that are no better than what its pool
/// holds are left out.
void enumerate_spins(const SpinProblem& problem, const FreeFlips& flips, SearchRecord& record);

}  // namespace poise
