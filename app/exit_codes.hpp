/// What the program tells the shell.
#pragma once

namespace poise::app {

enum ExitCode : int {
  kSuccess = 0,
  kFailure = 1,       ///< something went wrong while running
  kBadInput = 2,      ///< bad usage or input; nothing was written
  kWarnings = 3,      ///< there were warnings, under --strict
  kInterrupted = 130  ///< Ctrl-C; what was drawn until then is kept
};

}  // namespace poise::app
