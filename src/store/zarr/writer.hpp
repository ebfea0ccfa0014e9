/// The run as a Zarr v3 store that xarray and ArviZ open as it is: written while the run grows, and its own journal.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <poise/trace.hpp>
#include "base/thread_pool.hpp"
#include "store/run_file.hpp"
#include "store/zarr/column.hpp"
#include "store/zarr/folder.hpp"
#include "store/zarr/metadata.hpp"
#include "store/zarr/shards.hpp"

namespace poise::zarr {

/// Draws go into chunks, and every so often into a commit: what a commit has is there whatever happens to the program
/// or the machine. A commit may take a state with it, from which the run is resumed.
///
/// Failures are a std::runtime_error that names the path; the writer is then closed and ignores what follows. Destroyed
/// without finish() it still commits what it holds.
class Writer final : public Sink {
 public:
  /// Takes hold of the folder. Throws an InputError where it cannot be written, or where the run does not fit on the
  /// disk. What is there stays until `begin` or the first state.
  explicit Writer(const std::string& path, const StoreOptions& options = {});
  ~Writer() override;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// To be called before `begin`: the store is continued behind the first draws of each chain. `root` is what it says
  /// of itself, with the state that the run is resumed from.
  void resume(Root root, std::size_t draws);
  /// To be called before `begin`: the chunks of states are written by others, and nothing is committed but by `commit`,
  /// `save` and `close_draws`.
  void leave_states() { leaves_states_to_others_ = true; }

  void begin(const VariableLayout& layout, std::size_t chains, const std::vector<std::string>& monitor_names,
             const std::string& settings) override;
  void write(const DrawBatch& block) override;
  /// Whether it is time to commit the draws so far.
  [[nodiscard]] bool is_due();
  /// Does so in the background, once what others write is on the disk.
  void commit(std::shared_future<void> others);
  /// Commits the draws so far with a state, in the background. May be called before `begin`.
  void save(std::string state, std::shared_future<void> others = {});
  /// Commits took so much more of the run's time.
  void add_time(std::chrono::nanoseconds time) { spent_ += time; }
  /// Waits until the last commit is on the disk, and throws what went wrong with it.
  void settle();
  /// Commits all draws.
  void close_draws();
  void finish(const std::string& results) override;
  /// The run is to leave no states behind; before `finish`.
  void forget_states() { leaves_states_ = false; }

  /// Draws per chain in the last commit that is known to be on the disk.
  [[nodiscard]] std::size_t committed_draws() const { return durable_; }

 private:
  enum class Phase { before, open, complete, closed };
  enum class Metadata { of_root, of_all };  // that a commit writes

  template <typename Body>
  void guarded(Body&& body);
  void wait();
  void clear_earlier_run();
  void take_up_root();
  void take_up_draws();
  void add_column(const Array& array, Column::Source source, std::size_t monitor = 0);
  void define(const std::vector<std::string>& monitor_names);
  void define_states();
  void write_array(const Array& array);
  void write_numbers(const std::string& group);
  void write_chunks(bool all);
  void check(const DrawBatch& block) const;
  [[nodiscard]] Commit take_commit(Metadata metadata);
  void start(Commit commit, std::shared_future<void> others);

  StoreOptions options_;
  Folder folder_;
  ThreadPool pool_;
  Phase phase_ = Phase::before;
  Root root_;
  VariableLayout layout_;
  std::size_t chains_ = 0;
  StateShape states_;
  std::vector<Column> columns_;
  std::optional<Shards> shards_;  // of the column of states, where it has any
  bool cleared_ = false;          // an earlier run is gone, or is continued
  bool is_resumed_ = false;
  bool leaves_states_ = true;
  bool leaves_states_to_others_ = false;
  bool new_folders_ = false;
  bool has_states_ = false;
  bool has_blocks_ = false;
  std::size_t resumed_draws_ = 0;

  std::size_t draws_ = 0;        // per chain that came
  std::size_t committed_ = 0;    // of these, in the last commit
  std::size_t durable_ = 0;      // in the last one that is on the disk
  std::size_t numbered_ = 0;     // draws whose numbers were written
  std::vector<NewFile> files_;   // of the next commit
  std::string last_state_root_;  // the root as it was committed with the last state
  std::future<void> committing_;
  std::chrono::steady_clock::duration prepared_{};  // what the last commit took of the run's time
  std::chrono::steady_clock::duration took_{};      // and of its own
  std::chrono::steady_clock::duration spent_{};     // what has come to that since it was begun
  std::chrono::steady_clock::time_point due_;
};

/// Bytes that a run of this shape needs on the disk at most, 0 when the number of draws is unknown.
[[nodiscard]] std::uint64_t expected_bytes(const StoreOptions& options);

}  // namespace poise::zarr
