/// Training that goes on, for `poise resume`.
#pragma once

#include <string>

#include "run/checkpoint.hpp"

namespace poise::app {

/// Who began it, in a checkpoint.
inline constexpr const char* kTrainProgram = "poise train";

struct TrainAgain {
  std::string path;     ///< of the weights
  std::string threads;  ///< as before where empty
  bool quiet = false;
};

/// Gives the exit code.
int go_on_training(const TrainAgain& words, Checkpoint checkpoint);

}  // namespace poise::app
