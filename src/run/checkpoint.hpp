/// A run that survives: its state on the disk behind its draws, from which it is resumed bitwise.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/run.hpp>
#include "base/state_file.hpp"
#include "base/thread_pool.hpp"
#include "run/run_store.hpp"

namespace poise {

/// The last one of a run or, as read_state and write_state do, beside any other file that is being made.
[[nodiscard]] Checkpoint read_checkpoint(const std::string& path, std::string& note);
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// What the store of a run keeps of one.
[[nodiscard]] std::string checkpoint_bytes(const Checkpoint& checkpoint);

/// Whether the run at a path is complete, of which the checkpoint says that all draws were made: nothing was lost
/// between the last draw and the end.
[[nodiscard]] bool is_complete(const std::string& path);

/// Sends the draws of a run to its store. Takes checkpoints between rounds; another thread waits for the
/// disk while chains move on. Where there are ranks all of them have one and make the same calls, but for `finish`.
class CheckpointedSink final : public Sink {
 public:
  /// Takes hold of the store. Throws InputError where it cannot be written, where another program holds it, or where
  /// there is an unfinished run that `resumed` is not.
  /// Of ranks it is the root that has the command and the state of a resumed run; all know of how many draws it is.
  CheckpointedSink(std::string path, const Model& model, const RunOptions& run, const CheckpointOptions& options,
                   nlohmann::json command, std::optional<Checkpoint> resumed = std::nullopt, std::size_t observers = 0,
                   Collective* ranks = nullptr);
  ~CheckpointedSink() override = default;
  CheckpointedSink(const CheckpointedSink&) = delete;
  CheckpointedSink& operator=(const CheckpointedSink&) = delete;

  void begin(const VariableLayout& layout, std::size_t chains, const std::vector<std::string>& monitor_names,
             const std::string& settings) override;
  [[nodiscard]] bool takes_own_states() const override { return store_.takes_own_states(); }
  void set_own_chains(std::size_t first, std::size_t count) override { store_.set_own_chains(first, count); }
  void write(const DrawBatch& block) override;
  /// At the root.
  void finish(const std::string& results) override;

  /// Makes a new run the one that was resumed.
  void load(Run& run);
  /// To be called between rounds; writes a checkpoint where one is due, and the first time where there are ranks.
  void after_round(const Run& run);
  /// To be called when the run ends, before its draws are handed over. The store of the root can be read from here on.
  void after_last_round(const Run& run, bool finished);

  /// What went wrong with checkpoints; the run continues without. Complete after `after_last_round`.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  void save(const Run& run, bool finished);
  [[nodiscard]] bool is_root() const { return ranks_ == nullptr || ranks_->is_root(); }
  void note_failure(const std::string& reason);

  std::string path_;
  CheckpointOptions options_;
  nlohmann::json command_;
  std::optional<Checkpoint> resumed_;
  Collective* ranks_;
  RunStore store_;
  Clock::time_point keeps_from_;  // runs that end later leave a checkpoint
  Clock::time_point due_;         // of the next one
  bool has_first_ = false;        // the one of a run on ranks, which is taken before the first draw
  std::vector<std::string> notes_;
};

}  // namespace poise
