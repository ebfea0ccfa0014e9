/// Levels that another level of the same variable is never worse than, and what that says of single changes.
#pragma once

#include <poise/network.hpp>

namespace poise {

/// Dead-end elimination (Desmet et al. 1992): a level goes where another one has at least the same product, whatever
/// the levels of all others that are left, as far as looking at one factor at a time can tell. Of the most probable
/// states one at least stays, and of other states any may go. The result is `network` with factors that are zero at
/// what went; `network` has no observed variables.
[[nodiscard]] Network without_dominated_levels(Network network);

/// Whether changes of single variables lead from any state of positive probability to any other; false where that is
/// not known. A level makes another one of its variable needless where it is at least `least_ratio` times as probable,
/// whatever the levels of all others that are left: one change leads from each state with that level to one without it.
/// Where one state is left at the end, all others lead to it. (Brightwell and Winkler 2000 call such constraints
/// dismantlable.)
[[nodiscard]] bool single_changes_connect(const Network& network, double least_ratio);

}  // namespace poise
