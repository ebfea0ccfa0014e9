/// Resuming a search for the best state, for `poise resume`.
#pragma once

#include <optional>
#include <string>

#include "run/checkpoint.hpp"

namespace poise::app {

/// Who began it, in a checkpoint.
inline constexpr const char* kOptimizeProgram = "poise optimize";

struct OptimizeAgain {
  std::string path;                      ///< of the states
  std::optional<unsigned> threads = {};  ///< as before without
  bool quiet = false;
};

/// Gives the exit code.
int continue_optimizing(const OptimizeAgain& words, Checkpoint checkpoint);

}  // namespace poise::app
