/// Levels that another level of the same variable is never worse than.
#pragma once

#include <poise/network.hpp>

namespace poise {

/// Dead-end elimination (Desmet et al. 1992): a level goes where another one has at least the same product, whatever
/// the levels of all others that are left, as far as looking at one factor at a time can tell. Of the most probable
/// states one at least stays, and of other states any may go. The result is `network` with factors that are zero at
/// what went; `network` has no observed variables.
[[nodiscard]] Network without_dominated_levels(Network network);

}  // namespace poise
