/// When checkpoints are written, from words.
#include "checkpoint_flags.hpp"

namespace poise::app {

void declare(CLI::App& command, CheckpointFlags& flags) {
  command.add_flag("--checkpoint", flags.always,
                   "Leave a checkpoint beside --out however short the run [where it lasts over a minute]");
  command.add_option("--checkpoint-every", flags.every, "Time between two checkpoints, such as 30s or 0.5 [30s]")
      ->type_name("S");
  command.add_flag("--no-checkpoint", flags.never, "Write none");
}

CheckpointOptions read_checkpoint_options(const CheckpointFlags& flags, const std::string& out, Problems& problems) {
  CheckpointOptions options;
  options.enabled = !flags.never && !out.empty();
  options.always = flags.always || !flags.every.empty();
  if (flags.never && options.always) {
    problems.add("--no-checkpoint cannot go with --checkpoint or --checkpoint-every");
  }
  if (out.empty() && options.always) {
    problems.add("--checkpoint: a run is resumed from its file, so it needs --out FILE.nc");
  }
  if (!flags.every.empty()) {
    std::string number = flags.every;
    if (number.ends_with('s')) number.pop_back();
    double seconds = 0.0;
    read_positive(number, "--checkpoint-every", seconds, problems);
    options.interval = std::chrono::duration<double>(seconds);
  }
  if (options.always) options.first = options.interval;
  return options;
}

}  // namespace poise::app
