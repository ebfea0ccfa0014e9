/// The options about checkpoints that `sample` and `train` share.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "run/checkpoint.hpp"

#include "run_flags.hpp"

namespace poise::app {

struct CheckpointFlags {
  std::string every;
  bool always = false;
  bool never = false;
};

void declare(CLI::App& command, CheckpointFlags& flags);

/// `out` is where the work goes; without it there are no checkpoints. Problems are noted.
[[nodiscard]] CheckpointOptions read_checkpoint_options(const CheckpointFlags& flags, const std::string& out,
                                                        Problems& problems);

}  // namespace poise::app
