/// A stored run from beginning to end: options, the store of its draws, checkpoints, progress, and its report.
///
/// The program and Python both drive their runs through it, so each resumes the runs of the other.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <poise/model.hpp>
#include <poise/run.hpp>

namespace poise {

struct Checkpoint;
struct Report;

/// How a model can be made again: from its text on the command line, or from a spec whose values may hold any
/// character. Neither is given for models that exist in memory only, such as user targets.
struct ModelSource {
  std::string text = {};
  std::optional<Spec> spec = {};
  ModelFiles files = {};

  /// Whether the model can be made again from what is stored.
  [[nodiscard]] bool is_known() const { return !text.empty() || spec.has_value(); }
};

/// What a stored run is made of: model, sampler, options and files.
struct SessionOptions {
  ModelSource source = {};
  std::string sampler = "auto";
  RunOptions run = {};
  CheckpointOptions checkpoints = {};
  std::string out = {};  ///< the folder of the Zarr store, as in run.zarr; without it nothing is stored
  /// What else the caller writes, by name: a checkpoint keeps these paths for the program that resumes the run.
  std::map<std::string, std::string> outputs = {};
};

/// What the checkpoint of a run says; enough to resume it.
struct StoredSession {
  std::string program;  ///< that began it; other work than a session, such as training, has no more than that
  SessionOptions options;
  std::string model_name;
  std::size_t draws = 0;  ///< of each chain
  bool finished = false;  ///< whether these are all that were asked for
  std::string note;       ///< what was wrong with the last checkpoint, where an older one is used
  std::shared_ptr<Checkpoint> checkpoint;

  /// Throws InputError where the model exists in memory only, or where one of its files has changed.
  [[nodiscard]] Model make_model() const;
  /// Asks for so many draws in all; without a number, for those that are missing. Throws InputError where there are
  /// more already, or none is missing.
  void ask_for(std::optional<std::size_t> wanted);
};

inline constexpr const char* kSessionProgram = "poise sample";

/// Reads the checkpoint of the run at PATH: the root does, and the other ranks hear of it. Throws InputError where
/// there is none.
[[nodiscard]] StoredSession read_session(const std::string& path, Collective* ranks = nullptr);

/// A path as it was given when a run began, from the folder of that time where it is still there.
[[nodiscard]] std::string path_from(const StoredSession& stored, const std::string& path);

/// One run. All ranks make the same calls, up to `finish`.
class Session {
 public:
  /// Takes hold of the files. Of the hooks, `sink` and `after_round` are the session's own. With a checkpoint of
  /// `read_session`, and the options and the model that go with it, the run is resumed: its draws are those of a run
  /// that was never stopped, bitwise. Throws InputError where the options make no sense, where the files cannot be
  /// written, or where they hold an unfinished run that is not resumed.
  Session(Model model, SessionOptions options, RunHooks hooks, const std::shared_ptr<Checkpoint>& resumed = nullptr);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Continues a run that is in memory, from its state and its draws; before `run`.
  void continue_from(std::string state, const Trace& draws);
  /// Keeps the state that the run ends in, where it is small and all draws are in memory; before `run`.
  void keep_state();

  /// Warm-up and sampling. Draws are in the file and the last checkpoint beside it when it returns. `begun` is called
  /// when chains are where a resumed run had left them, with the draws of each.
  void run(const std::function<void(std::size_t)>& begun = {});
  /// The result of `run`, draws included where they are in memory.
  [[nodiscard]] RunResult& result();
  [[nodiscard]] std::string& state();  ///< see keep_state; empty where the run cannot be continued from memory
  /// The report, which the root stores in the file as well. For ranks that have the draws.
  [[nodiscard]] Report finish();

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace poise
