/// Resuming a training, for `poise resume`.
#pragma once

#include <optional>
#include <string>

#include "run/checkpoint.hpp"

namespace poise::app {

/// Who began it, in a checkpoint.
inline constexpr const char* kTrainProgram = "poise train";

struct TrainAgain {
  std::string path;                      ///< of the weights
  std::optional<unsigned> threads = {};  ///< as before without
  bool quiet = false;
};

/// Gives the exit code.
int continue_training(const TrainAgain& words, Checkpoint checkpoint);

}  // namespace poise::app
