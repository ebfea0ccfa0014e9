/// A run as it is stored: what is known before it is written, and what is read of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <limits>
#include <string>

#include <nlohmann/json.hpp>

#include <poise/trace.hpp>

namespace poise {

/// What is known of a run before it starts. It decides whether the run will fit on the disk; what a run turns out to be
/// otherwise is still stored right. Zero stands for unknown.
struct StoreOptions {
  std::size_t chains = 0;
  std::size_t draws = 0;            ///< per chain; 0 also when the clock ends the run
  std::size_t variables = 0;        ///< 0 when the draws themselves are not kept
  std::size_t levels = 2;           ///< largest cardinality of a variable: it bounds the size of compressed draws
  std::size_t monitors = 1;         ///< log_prob included
  std::size_t most_files = 10'000;  ///< of states; where chunks are more, files hold several
  unsigned threads = 1;             ///< that compress draws; what is stored does not depend on it

  /// Least time between two commits, 0 for one after every batch. A killed run loses what came after the last one.
  std::chrono::milliseconds sync_interval{1000};
};

/// What to read of a run: all of it, or a part that fits into memory.
struct ReadOptions {
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

  bool draws = true;   ///< false leaves x where it is
  bool series = true;  ///< false leaves monitors, acceptance rates and steps there
  std::size_t first_draw = 0;
  std::size_t most_draws = all;  ///< 0: only what is known of the run
  std::size_t first_variable = 0;
  std::size_t most_variables = all;
  std::size_t first_chain = 0;  ///< of states; series are read of all chains
  std::size_t most_chains = all;
};

/// A run as it was stored, or a part of it: `trace.dropped` counts the draws that were left out, and x has the
/// variables that were asked for. `results` is null when the run was killed before its end.
struct StoredRun {
  VariableLayout layout;
  Trace trace;
  nlohmann::json settings;
  nlohmann::json results;
  bool has_states = false;  ///< draws of the variables are stored, whether or not they were read
};

/// Whether a path names the store of a run: by its ending, or because there is one.
[[nodiscard]] bool is_store(const std::string& path);

/// Throws an InputError where the ending of a name says that it is a file of another kind.
void check_store_name(const std::string& path);

/// Reads a finished, growing or killed run; an InputError says what is wrong with anything else, whatever its bytes.
[[nodiscard]] StoredRun read_run(const std::string& path, const ReadOptions& options = {});

/// Entries from `first` on, at most `most` of them, of so many.
struct Range {
  std::size_t first = 0;
  std::size_t count = 0;
};
[[nodiscard]] Range range_of(std::size_t first, std::size_t most, std::size_t all);

/// The JSON of a stored text; null where it is empty. Throws an InputError that begins with `path`.
[[nodiscard]] nlohmann::json parse_stored(const std::string& text, const char* name, const std::string& path);

/// Whether there is a number that is none of the whole ones that a store has: it must not be converted to one.
[[nodiscard]] bool has_fraction(const nlohmann::json& json);

/// Throws an InputError when a run is known to be larger than the free space of the disk.
void check_space(const std::string& path, const StoreOptions& options, std::uint64_t needed);

/// The layout of variables as the JSON text that files keep: what the dimensions of the draws do not say. Names are not
/// part of it; they are an array of the store.
[[nodiscard]] std::string layout_text(const VariableLayout& layout);

/// The layout that was written so. Throws an InputError that begins with the reader's own word for the file, as in
/// "run.zarr has a layout with ..."; `most` bounds the number of variables, for a damaged one must not decide how much
/// memory is taken.
[[nodiscard]] VariableLayout parse_layout(const nlohmann::json& stored, const std::string& path, std::uint64_t most);

}  // namespace poise
