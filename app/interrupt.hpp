/// Signals that end a run: the first SIGINT or SIGTERM asks it to end, a second SIGINT (Ctrl-C) ends the program.
#pragma once

#include <atomic>

namespace poise::app {

/// Takes SIGINT and SIGTERM over for the rest of the program. The flag becomes true with the first of them.
const std::atomic<bool>& stop_on_interrupt();

}  // namespace poise::app
