/// Where a network with zeros in its tables has positive probability: what its zeros rule out, and a state inside.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/network.hpp>

namespace poise {

/// Levels that no zero rules out, as far as looking at one factor at a time can tell (generalised arc consistency): a
/// level stays only if every factor of its variable has a positive entry with it in which all others have levels that
/// stay. A level that goes has probability zero; one that stays need not have a positive one.
struct Domains {
  std::vector<std::size_t> start;     ///< variables + 1
  std::vector<std::uint8_t> allowed;  ///< 0 or 1 at start[i] + level
  std::vector<Index> count;           ///< levels that stay, of each variable; 1 for an observed one

  [[nodiscard]] bool allows(Index i, Index level) const { return allowed[start[i] + level] != 0; }
};

/// Throws InputError, with the name of the factor, where nothing stays of a variable. Looks at 2e9 table entries at
/// most and then gives what is known so far, in which every level that went has probability zero all the same.
[[nodiscard]] Domains propagate_zeros(const Network& network);

struct RepairOptions {
  std::uint64_t changes = 0;                ///< tried and taken back at most; 0: 2000 per variable, at least a million
  const std::atomic<bool>* stop = nullptr;  ///< looked at before every change; true ends the search with an InputError
};

/// Makes a state one of positive probability; random choices keep starts from different seeds apart. Gives `x` itself
/// when it is inside already; levels of `x` that `domains` rules out are replaced at random first. Two searches take
/// turns:
///
/// - Weighted repair: while factors are zero, one of them is picked and the variable changed that leaves the least
///   weight of factors at zero; a factor that resists gains weight. Stays close to `x`, solves large loose problems.
/// - Backtracking: variables get their levels one by one, that of the repaired state first, and zeros are propagated
///   each time. Solves what hangs together tightly (parities, circuits, puzzles), and can prove that there is no state.
///
/// Throws InputError that says how many factors were zero in the best state seen and names up to three: when there is
/// no state, and when none was found within `changes` or within 2e8 looks at table entries (seconds; 200 more for each
/// entry of a table with zeros).
[[nodiscard]] std::vector<Value> repair(const Network& network, const Domains& domains, std::vector<Value> x, Rng& rng,
                                        const RepairOptions& options = {});

}  // namespace poise
