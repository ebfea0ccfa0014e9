/// The chunks of the states of some chains, which the rank that moves these chains writes itself.
#pragma once

#include <chrono>
#include <cstddef>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <poise/collective.hpp>
#include <poise/trace.hpp>
#include "base/state_file.hpp"
#include "base/thread_pool.hpp"
#include "store/run_file.hpp"
#include "store/zarr/column.hpp"
#include "store/zarr/folder.hpp"
#include "store/zarr/metadata.hpp"
#include "store/zarr/shards.hpp"

namespace poise::zarr {

/// All ranks call it, and the root holds the folder. Whether each of them sees that very folder and can write to it:
/// the root makes a file with a name of its own, the others look for it and make files that the root looks for. They
/// hold these for as long as `held` lives. In doubt they do not, as with POISE_SHARED=off in the environment.
[[nodiscard]] bool share_folder(const std::string& store, Collective& ranks, std::optional<Lock>& held);

/// Failures are a std::runtime_error that names the path.
class Part {
 public:
  /// What is known of the run is the same at all ranks.
  Part(std::string store, const StoreOptions& known);

  /// Before the first block. Where the run goes on, `root` says what is stored of so many draws of each chain.
  void begin(const VariableLayout& layout, std::size_t chains, Range own, const std::optional<Root>& root,
             std::size_t draws);
  /// The block is of all chains.
  void write(const DrawBatch& block);
  /// Brings all draws so far to the disk, in the background, with the names that they are to have: what the root that
  /// is there counts on stays as it is.
  void start();
  /// Whether that is under way; throws what went wrong.
  [[nodiscard]] bool is_busy();
  void wait();
  /// What commits took of the run's time since the last call.
  [[nodiscard]] std::chrono::nanoseconds take_time() { return std::exchange(spent_, {}); }

 private:
  void make_column(const Array& array);
  void write_chunks(bool all);

  std::string store_;
  StoreOptions known_;
  ThreadPool pool_;
  VariableLayout layout_;
  std::size_t chains_ = 0;
  Range own_;
  std::optional<Column> column_;  // once there are states
  std::optional<Shards> shards_;
  std::vector<NewFile> files_;
  bool has_new_ = false;  // draws since the last start
  std::chrono::nanoseconds spent_{};
  std::future<void> syncing_;
};

}  // namespace poise::zarr
