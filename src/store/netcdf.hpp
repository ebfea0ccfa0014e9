/// The run as a NetCDF-4 file that ArviZ opens as it is: written while the run grows, and read back.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <poise/trace.hpp>
#include <poise/types.hpp>
#include "store/draw_queue.hpp"
#include "store/run_file.hpp"

namespace poise {

namespace netcdf {
class ChunkWriter;
}

using NetcdfOptions = StoreOptions;

/// Bytes that a run of this shape needs on the disk at most, 0 when the number of draws is unknown.
[[nodiscard]] std::uint64_t expected_netcdf_bytes(const NetcdfOptions& options);

/// Writes a run to PATH itself, from the moment of begin(); until then a file already there stays as it is.
///
/// Draws wait in memory and go to the file in one chunk with a sync behind them, so that the file on the disk is
/// complete up to the last sync at all times but the milliseconds in which it is being written. Compressed files
/// take whole chunks only: to rewrite a compressed chunk would move it, and free what a reader of a killed run needs.
///
/// Failures to write are a std::runtime_error that names the path; the sink is then closed and ignores what follows.
/// Destroyed without finish() it still writes what it holds: an aborted run keeps its draws.
class NetcdfSink : public Sink {
 public:
  /// Checks that PATH can be written and that the run fits on the disk, and throws an InputError otherwise.
  explicit NetcdfSink(std::string path, NetcdfOptions options = {});
  ~NetcdfSink() override;
  NetcdfSink(const NetcdfSink&) = delete;
  NetcdfSink& operator=(const NetcdfSink&) = delete;

  /// Creates the file. The first monitor must be log_prob.
  void begin(const VariableLayout& layout, std::size_t chains, const std::vector<std::string>& monitor_names,
             const std::string& settings) override;
  void write(const DrawBatch& block) override;
  /// Writes what is left of the draws and closes the file, so that it can be read; `finish` opens it once more.
  void close_draws();
  void finish(const std::string& results) override;

  /// Draws per chain in the file at the last sync.
  [[nodiscard]] std::size_t synced_draws() const { return written_; }

 private:
  enum class Phase { before, open, complete, closed };  // complete: closed, but for the results
  struct Group {
    int id = -1;
    std::array<int, 2> dimensions{};  // chain, draw
    int draw = -1;                    // coordinate variable
  };

  template <typename Body>
  void guarded(Body&& body);
  void create(const std::vector<std::string>& monitor_names, const std::string& settings);
  [[nodiscard]] Group define_group(const char* name) const;
  [[nodiscard]] int define_series(const Group& group, const std::string& name, int type) const;
  void define_x();
  void define_names(int dimension) const;
  void check(const DrawBatch& block) const;
  void flush(std::size_t draws);
  void write_now(const DrawBatch& block);
  void reserve(std::size_t bytes) const;
  [[nodiscard]] std::size_t growth(std::size_t draws) const;
  int close() noexcept;
  [[nodiscard]] std::string absolute_path() const;

  std::string path_;
  NetcdfOptions options_;
  VariableLayout layout_;
  std::size_t chains_ = 0;

  Phase phase_ = Phase::before;
  int id_ = -1;
  int descriptor_ = -1;  // of the same file, to reserve space
  Group posterior_;
  Group sample_stats_;
  std::vector<std::pair<int, int>> monitors_;  // group and variable of each
  int acceptance_rate_ = -1;
  int n_steps_ = -1;
  int x_ = -1;
  std::unique_ptr<netcdf::ChunkWriter> writer_;  // of x where it is compressed
  bool has_blocks_ = false;
  bool keeps_x_ = false;

  DrawQueue pending_;
  std::size_t written_ = 0;      // draws per chain in the file
  std::size_t whole_chunk_ = 1;  // draws are written in multiples of this, all but the last
  std::chrono::steady_clock::time_point next_sync_{};
};

/// Reads a finished, growing or killed run; an InputError says what is wrong with any other file, whatever its bytes.
/// The NetCDF library works in a forked child, which damaged files can crash or hold up; it costs one copy of the data
/// through a pipe.
[[nodiscard]] StoredRun read_netcdf(const std::string& path, const ReadOptions& options = {});

}  // namespace poise
