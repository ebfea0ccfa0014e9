/// A run that survives: its state beside the file of its draws, from which it is resumed bitwise.
///
/// Three files belong to a run at PATH. PATH itself is the NetCDF file; PATH.checkpoint is the state that chains had a
/// while ago, and what was asked for; PATH.draws is the journal of the draws, there only while the run is under way. A
/// state counts the draws that it goes with, and the journal has them on the disk before the state is.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/run.hpp>
#include "base/state_file.hpp"
#include "base/thread_pool.hpp"
#include "store/journal.hpp"
#include "store/netcdf.hpp"

namespace poise {

struct Checkpoint {
  nlohmann::json command;  ///< what the run was begun with
  std::size_t draws = 0;   ///< of each chain, that go with the state
  bool finished = false;   ///< whether these are all that were asked for
  std::string state;       ///< Run::save_rest
};

[[nodiscard]] std::string journal_path(const std::string& path);

/// As read_state and write_state do.
[[nodiscard]] Checkpoint read_checkpoint(const std::string& path, std::string& note);
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

/// Sends the draws of a run to its NetCDF file and to the journal. Takes checkpoints between rounds; a thread of its
/// own waits for the disk while chains move on.
class CheckpointedSink final : public Sink {
 public:
  /// Takes hold of the files. Throws InputError where they cannot be written, where another program holds them, or
  /// where there is an unfinished run that `resumed` is not.
  CheckpointedSink(std::string path, const Model& model, const RunOptions& run, const CheckpointOptions& options,
                   nlohmann::json command, std::optional<Checkpoint> resumed = std::nullopt, std::size_t observers = 0);
  ~CheckpointedSink() override;
  CheckpointedSink(const CheckpointedSink&) = delete;
  CheckpointedSink& operator=(const CheckpointedSink&) = delete;

  void begin(const VariableLayout& layout, std::size_t chains, const std::vector<std::string>& monitor_names,
             const std::string& settings) override;
  [[nodiscard]] bool wants_bits() const override { return journal_.has_value(); }
  void write(const DrawBatch& block) override;
  /// After the last draw: the file can be read from here on.
  void close_draws() { file_.close_draws(); }
  void finish(const std::string& results) override;

  // All ranks of a run call these, with the sink at the root and nothing elsewhere.

  /// Makes a new run the one that was resumed.
  static void load(CheckpointedSink* sink, Run& run);
  /// To be called between rounds; writes a checkpoint where one is due, and the first time where there are ranks.
  static void after_round(CheckpointedSink* sink, const Run& run);
  /// To be called when the run ends, before its draws are handed over.
  static void after_last_round(CheckpointedSink* sink, const Run& run, bool finished);

  /// What went wrong with checkpoints; the run continues without. Complete after `after_last_round`.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  static void save(CheckpointedSink* sink, const Run& run, bool finished);
  void write_state(const Run& run, bool finished, const std::function<std::string()>& state);
  /// Waits until the last checkpoint is on the disk, or could not be written.
  void settle();
  void note_failure(const std::exception& error);
  void forget_earlier_run();
  /// Gives the draws that go with the checkpoint, from the journal or, where a finished run has none, its file.
  void take_draws_back();

  std::string path_;
  CheckpointOptions options_;
  nlohmann::json command_;
  std::optional<Checkpoint> resumed_;
  DrawShape shape_;
  NetcdfSink file_;
  std::optional<DrawJournal> journal_;
  Clock::time_point keeps_from_;  // runs that end later leave a checkpoint
  Clock::time_point due_;         // of the next one
  std::future<void> writing_;     // of a checkpoint
  bool saved_ = false;            // a checkpoint, by this object
  bool has_first_ = false;        // the one of a run on ranks, which is taken before the first draw
  bool leaves_none_ = false;      // the run is finished and was too short to leave one behind
  std::vector<std::string> notes_;
};

}  // namespace poise
