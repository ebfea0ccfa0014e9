/// What work that was killed is resumed from: training, and the search for the best state.
#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include <poise/types.hpp>
#include "run/checkpoint.hpp"

namespace poise::app {

/// The state of work beside the file that it makes, as long as it is not over.
class WorkCheckpoints {
 public:
  /// Takes hold of the files. Throws InputError where another program has, or where there is unfinished work that is
  /// not resumed; `work` says what that is called.
  WorkCheckpoints(std::string path, const char* work, const CheckpointOptions& options, nlohmann::json command,
                  bool resumes)
      : path_(std::move(path)), options_(options), command_(std::move(command)), saved_(resumes) {
    if (!options_.enabled) return;
    lock_.emplace(path_ + ".lock");
    const auto wait = resumes ? options_.interval : options_.first;
    due_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
    if (resumes || ::access(checkpoint_path(path_).c_str(), F_OK) != 0) return;
    throw InputError(
        fmt::format("{0} has an unfinished {2}: 'poise resume {0}' continues it; to begin anew, delete {1}", path_,
                    checkpoint_path(path_), work));
  }

  [[nodiscard]] bool is_due() const { return options_.enabled && Clock::now() >= due_; }

  /// Work continues where the disk is full.
  void save(std::string state) {
    if (!options_.enabled) return;
    try {
      write_checkpoint(path_, {command_, 0, false, std::move(state)});
      saved_ = true;
    } catch (const std::exception& error) {
      if (problem_.empty()) fmt::print(stderr, "note: no checkpoint could be written: {}\n", error.what());
      problem_ = error.what();
    }
    due_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.interval);
  }
  /// Whether there is a checkpoint; work that has not come to a round yet leaves none.
  [[nodiscard]] bool is_saved() const { return options_.enabled && saved_ && problem_.empty(); }
  void remove() const {
    if (options_.enabled) remove_states(path_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::string path_;
  CheckpointOptions options_;
  nlohmann::json command_;
  std::optional<Lock> lock_;
  Clock::time_point due_;
  std::string problem_;
  bool saved_;
};

}  // namespace poise::app
