/// The ranks that make a run together, where a launcher has started several.
#pragma once

#include <poise/collective.hpp>

namespace poise::app {

/// Finds out, once, before anything is written. From then on only the root has anything to say: what others write to
/// standard output and standard error goes nowhere. Throws InputError where there are several and no MPI.
void join_ranks();
/// Waits for the others; to be called at the end.
void leave_ranks();

/// Nothing where there is one process.
[[nodiscard]] Collective* ranks();
/// Whether this is the process that writes files and talks.
[[nodiscard]] bool is_root();

}  // namespace poise::app
