/// From chunks to draws. Nothing that a store says of itself is believed: memory is taken for chunks that are there.
#include "store/zarr/reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <poise/types.hpp>
#include "base/file.hpp"
#include "store/label_bits.hpp"
#include "store/zarr/codec.hpp"
#include "store/zarr/folder.hpp"
#include "store/zarr/shard_file.hpp"

namespace poise::zarr {

namespace {

constexpr const char* kNoCheckpoint =
    "{} has no checkpoint to resume from: a run leaves one after a minute, or from the start with --checkpoint";

constexpr std::size_t kMostChunk = std::size_t{1} << 28;  // bytes of a chunk, unpacked
constexpr int kAttempts = 10;

/// A whole file; nothing where there is none. Whether there is one must be known: a run that is thought to be missing
/// is begun anew.
std::optional<std::string> read_bytes(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    throw std::runtime_error(fmt::format("Cannot read {}: {}.", path, std::generic_category().message(errno)));
  }
  struct stat status {};
  std::optional<std::string> bytes;
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
      static_cast<std::uint64_t>(status.st_size) <= 2 * kMostChunk) {
    bytes.emplace(static_cast<std::size_t>(status.st_size), '\0');
    std::size_t got = 0;
    while (got < bytes->size()) {
      const ssize_t read = ::read(descriptor, bytes->data() + got, bytes->size() - got);
      if (read < 0 && errno == EINTR) continue;
      if (read <= 0) break;
      got += static_cast<std::size_t>(read);
    }
    bytes->resize(got);
  }
  ::close(descriptor);
  return bytes;
}

std::string read_root_text(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw InputError(fmt::format("Cannot read {}: {}.", path, std::generic_category().message(errno)));
  }
  std::optional<std::string> text = read_bytes(root_path(path));
  if (text) return *std::move(text);
  const bool is_ours = ::access((path + "/.poise").c_str(), F_OK) == 0;
  throw InputError(is_ours ? fmt::format("{} holds no draws yet: its run has just begun, or never came so far.", path)
                           : fmt::format("{} does not hold a run of poise: it has no zarr.json.", path));
}

std::string words_of(const char* thing, Range range) {
  if (range.count == 1) return fmt::format("{} {}", thing, range.first);
  return fmt::format("{}s {} to {}", thing, range.first, range.first + range.count - 1);
}

class Reader {
 public:
  Reader(std::string path, Root root) : path_(std::move(path)), root_(std::move(root)) {}

  StoredRun read(const ReadOptions& options) {
    StoredRun run;
    Trace& trace = run.trace;
    if (root_.monitors.empty()) fail("holds no draws yet: its run is in the warm-up");
    const Array& lp = series(root_.monitors.front(), "float64");
    trace.chains = lp.shape[0];
    all_draws_ = lp.shape[1];
    chains_ = trace.chains;
    range_ = range_of(options.first_draw, options.most_draws, all_draws_);
    trace.draws = range_.count;
    trace.dropped = all_draws_ - trace.draws;
    run.settings = parse_stored(root_.settings, "settings", path_);
    run.results = parse_stored(root_.results, "results", path_);
    read_layout(run);
    for (const std::string& monitor : root_.monitors) {
      const Array& array = series(monitor, "float64");
      const std::string name = monitor.substr(monitor.find('/') + 1);
      trace.monitor_names.push_back(trace.monitor_names.empty() ? "log_prob"
                                    : array.long_name.empty()   ? name
                                                                : array.long_name);
      trace.monitors.emplace_back();
      if (options.series) read_series(array, trace.monitors.back());
    }
    const Array& acceptance_rate = series("sample_stats/acceptance_rate", "float64");
    const Array& n_steps = series("sample_stats/n_steps", "int64");
    if (options.series) {
      read_series(acceptance_rate, trace.acceptance_rate);
      read_series(n_steps, trace.n_steps);
      check_counts(trace);
    }
    if (options.draws && run.has_states) {
      read_states(run, range_of(options.first_chain, options.most_chains, chains_),
                  range_of(options.first_variable, options.most_variables, run.layout.variables));
    }
    return run;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw InputError(fmt::format("{} {}.", path_, what)); }

  [[noreturn]] void fail_draws(Range chains, Range draws, const std::string& why) const {
    draws.count = std::max<std::size_t>(1, std::min(draws.count, all_draws_ - std::min(all_draws_, draws.first)));
    fail(fmt::format("cannot be read: {} of {} {}", words_of("draw", draws), words_of("chain", chains), why));
  }

  /// An array of (chain, draw, ...) whose shape makes sense.
  [[nodiscard]] const Array& growing(const std::string& name, const std::string& type, std::size_t dimensions) const {
    const Array* const array = root_.find(name);
    if (array == nullptr || array->type != type) fail(fmt::format("has no array '{}' of type {}", name, type));
    const bool has_shape = array->shape.size() == dimensions && array->chunk.size() == dimensions &&
                           array->dimensions.size() == dimensions && array->dimensions[0] == "chain" &&
                           array->dimensions[1] == "draw";
    std::size_t bytes = type == "int8" ? 1 : 8;
    bool overflow = !has_shape;
    for (const std::size_t length : array->chunk) {
      overflow = overflow || length == 0 || __builtin_mul_overflow(bytes, length, &bytes) || bytes > kMostChunk;
    }
    for (const std::size_t length : array->shape) {
      overflow = overflow || length > std::numeric_limits<std::size_t>::max() / 2;
    }
    if (overflow) fail(fmt::format("has an array '{}' whose shape makes no sense", name));
    return *array;
  }

  [[nodiscard]] const Array& series(const std::string& name, const std::string& type) const {
    const Array& array = growing(name, type, 2);
    const bool agrees = all_draws_ == 0 || (array.shape[0] == chains_ && array.shape[1] == all_draws_);
    if (!agrees) fail(fmt::format("has an array '{}' of a wrong length", name));
    return array;
  }

  void read_layout(StoredRun& run) const {
    const nlohmann::json layout = parse_stored(root_.layout, "layout", path_);
    if (!layout.is_null()) run.layout = parse_layout(layout, path_, kMostChunk);
    const Array* x = root_.find("posterior/x");
    run.has_states = x != nullptr;
    if (x == nullptr) return;
    const bool is_lattice = run.layout.is_lattice();
    x = &growing("posterior/x", "int8", is_lattice ? 4 : 3);
    const std::vector<std::size_t> inner(x->shape.begin() + 2, x->shape.end());
    const std::vector<std::size_t> expected = is_lattice ? std::vector<std::size_t>{run.layout.rows, run.layout.columns}
                                                         : std::vector<std::size_t>{run.layout.variables};
    if (inner != expected || x->shape[0] != chains_ || x->shape[1] != all_draws_ || x->chunk[0] != 1 ||
        !std::equal(inner.begin(), inner.end(), x->chunk.begin() + 2)) {
      fail("has draws whose shape is not that of its layout");
    }
    if (!is_lattice && root_.find("posterior/x_variable") != nullptr) read_names(run.layout);
  }

  void read_names(VariableLayout& layout) const {
    const std::optional<std::string> stored = read_bytes(path_ + "/posterior/x_variable/c.0");
    const std::optional<std::string> bytes = stored ? decode(*stored, kMostChunk) : std::nullopt;
    const auto damaged = [&] { fail("cannot be read: the names of its variables are missing or damaged"); };
    if (!bytes) damaged();
    std::size_t at = 0;
    const auto number = [&] {
      std::uint32_t value = 0;
      if (bytes->size() - at < sizeof value) damaged();
      std::memcpy(&value, bytes->data() + at, sizeof value);
      at += sizeof value;
      return std::size_t{value};
    };
    if (number() != layout.variables) damaged();
    for (Index i = 0; i < layout.variables; ++i) {
      const std::size_t length = number();
      if (bytes->size() - at < length) damaged();
      layout.names.push_back(bytes->substr(at, length));
      at += length;
    }
  }

  /// Where a chunk is.
  struct Stored {
    Range chains, draws;
    std::string file;
    std::size_t number = 0;  // in its shard
  };

  /// Calls visit(stored) for every chunk that has some of the draws of some of the chains.
  template <class Visit>
  void each_stored(const Array& array, Range of, Visit&& visit) const {
    if (range_.count == 0) return;
    const std::size_t length = array.chunk[1];
    for (std::size_t chain = of.first; chain < of.first + of.count; chain += array.chunk[0]) {
      for (std::size_t k = range_.first / length; k * length < range_.first + range_.count; ++k) {
        std::vector<std::size_t> key(array.chunk.size(), 0);
        key[0] = chain / array.chunk[0];
        key[1] = k;
        visit({{chain, std::min(array.chunk[0], chains_ - chain)},
               {k * length, length},
               chunk_path(array, key),
               array.sharded > 0 ? k % array.sharded : 0});
      }
    }
  }

  /// The shard that was read last; chunks of it follow each other.
  struct OpenShard {
    std::string name;
    std::optional<ShardFile> file;
  };
  /// The shard that says where a chunk is.
  const ShardFile& shard_of(const Array& array, const Stored& chunk, OpenShard& open) const {
    if (open.name != chunk.file) {
      open.file.emplace(path_ + '/' + chunk.file, array.sharded);
      open.name = chunk.file;
    }
    const ShardFile::Found found = open.file->find(chunk.number);
    if (found == ShardFile::Found::missing) fail_missing(chunk);
    if (found == ShardFile::Found::damaged) fail_damaged(chunk);
    return *open.file;
  }

  [[noreturn]] void fail_missing(const Stored& chunk) const {
    fail_draws(chunk.chains, chunk.draws, fmt::format("are missing ({})", chunk.file));
  }
  [[noreturn]] void fail_damaged(const Stored& chunk) const {
    fail_draws(chunk.chains, chunk.draws, fmt::format("are damaged ({})", chunk.file));
  }

  /// Calls visit(chains, draws, bytes) for every chunk that has some of the draws of some of the chains.
  template <class Visit>
  void each_chunk(const Array& array, std::size_t bytes, Range of, Visit&& visit) const {
    if (range_.count == 0) return;
    for (const std::size_t length : array.chunk) bytes *= length;
    std::vector<char> unpacked(bytes);
    OpenShard open;
    each_stored(array, of, [&](const Stored& chunk) {
      const std::optional<std::string> stored =
          array.sharded > 0 ? shard_of(array, chunk, open).read(chunk.number) : read_bytes(path_ + '/' + chunk.file);
      if (!stored) fail_missing(chunk);
      if (!decode(*stored, unpacked.data(), bytes)) fail_damaged(chunk);
      visit(chunk.chains, chunk.draws, unpacked.data());
    });
  }

  /// Whether all chunks are there: memory is taken once they are.
  void expect_chunks(const Array& array, Range of) const {
    OpenShard open;
    each_stored(array, of, [&](const Stored& chunk) {
      if (array.sharded > 0) {
        static_cast<void>(shard_of(array, chunk, open));
      } else if (::access((path_ + '/' + chunk.file).c_str(), F_OK) != 0) {
        fail_missing(chunk);
      }
    });
  }

  [[nodiscard]] std::size_t entries(std::size_t chains, std::size_t width) const {
    std::size_t count = 0;
    if (__builtin_mul_overflow(chains, range_.count, &count) || __builtin_mul_overflow(count, width, &count) ||
        count > std::numeric_limits<std::size_t>::max() / 16) {
      fail("declares more data than there can be: it is damaged");
    }
    return count;
  }

  /// What a chunk and the draws that are read have in common.
  [[nodiscard]] Range common(Range draws) const {
    const std::size_t first = std::max(draws.first, range_.first);
    return {first, std::min(draws.first + draws.count, range_.first + range_.count) - first};
  }

  template <class Number>
  void read_series(const Array& array, std::vector<Number>& values) const {
    const Range all{0, chains_};
    expect_chunks(array, all);
    values.resize(entries(chains_, 1));
    each_chunk(array, sizeof(Number), all, [&](Range chains, Range draws, const char* bytes) {
      const Range wanted = common(draws);
      for (std::size_t k = 0; k < chains.count; ++k) {
        const char* const from = bytes + (k * draws.count + wanted.first - draws.first) * sizeof(Number);
        std::memcpy(values.data() + (chains.first + k) * range_.count + wanted.first - range_.first, from,
                    wanted.count * sizeof(Number));
      }
    });
  }

  void check_counts(const Trace& trace) const {
    const auto missing = std::find(trace.n_steps.begin(), trace.n_steps.end(), kNoCount);
    if (missing == trace.n_steps.end()) return;
    const auto at = static_cast<std::size_t>(missing - trace.n_steps.begin());
    fail_draws({at / range_.count, 1}, {range_.first + at % range_.count, 1}, "are missing in their chunk");
  }

  void read_states(StoredRun& run, Range of, Range columns) const {
    const Array& x = growing("posterior/x", "int8", run.layout.is_lattice() ? 4 : 3);
    const std::size_t width = run.layout.variables;
    const int fill = x.fill.is_number_integer() ? x.fill.get<int>() : 0;
    Index levels = 2;
    for (const Index cardinality : run.layout.cardinalities) levels = std::max(levels, cardinality);
    bool has_fill = true;
    for (Index level = 0; level < levels; ++level) {
      has_fill = has_fill && run.layout.label(static_cast<Value>(level)) != fill;
    }
    expect_chunks(x, of);
    const BitLabels labels = bit_labels(run.layout);
    (void)entries(of.count, columns.count);
    States& states = run.trace.x;
    states = States(columns.count, labels.low, labels.high);
    states.resize(of.count * range_.count);
    each_chunk(x, 1, of, [&](Range chains, Range draws, const char* bytes) {
      const Range wanted = common(draws);
      const char* const from = bytes + (wanted.first - draws.first) * width;
      if (has_fill && width > 0 && std::memchr(from, fill, wanted.count * width) != nullptr) {
        fail_draws(chains, wanted, "are missing in their chunk");
      }
      const std::size_t first_row = (chains.first - of.first) * range_.count + wanted.first - range_.first;
      for (std::size_t draw = 0; draw < wanted.count; ++draw) {
        const char* const row = from + draw * width + columns.first;
        std::uint8_t* const to = states.row(first_row + draw).data();
        if (!labels.has_bits()) {
          std::memcpy(to, row, columns.count);
        } else if (!pack_labels({reinterpret_cast<const std::int8_t*>(row), columns.count}, labels.low, labels.high,
                                to)) {
          fail_draws(chains, {wanted.first + draw, 1}, "have a label that is none of the two of their variables");
        }
      }
    });
  }

  std::string path_;
  Root root_;
  std::size_t chains_ = 0;
  std::size_t all_draws_ = 0;
  Range range_;
};

/// A root and its state, checked.
StoredPoint read_point(const std::string& path, const std::string& root_file) {
  const std::optional<std::string> text = read_bytes(root_file);
  if (!text) throw InputError(fmt::format("there is no {}", root_file));
  StoredPoint found{parse_root(*text, path), ""};
  if (found.root.state == 0) throw InputError(fmt::format(kNoCheckpoint, path));
  const std::string file = state_path(path, found.root.state);
  std::optional<std::string> state = read_bytes(file);
  if (!state) throw InputError(fmt::format("{} is missing", file));
  if (checksum(*state) != found.root.state_sum) throw InputError(fmt::format("{} is damaged", file));
  found.state = *std::move(state);
  return found;
}

}  // namespace

Root read_root(const std::string& path) {
  const std::string store = without_slash(path);
  return parse_root(read_root_text(store), store);
}

StoredPoint read_last_state(const std::string& path, std::string& note) {
  const std::string store = without_slash(path);
  try {
    return read_point(store, root_path(store));
  } catch (const InputError& error) {
    if (::access(previous_root_path(store).c_str(), F_OK) != 0) {
      if (::access(root_path(store).c_str(), F_OK) == 0) throw;
      throw InputError(fmt::format(kNoCheckpoint, store));
    }
    StoredPoint before = read_point(store, previous_root_path(store));
    note = fmt::format("{}, so the checkpoint before it is used", error.what());
    return before;
  }
}

StoredRun read_store(const std::string& path, const Root& root, const ReadOptions& options) {
  return Reader(without_slash(path), root).read(options);
}

StoredRun read_store(const std::string& path, const ReadOptions& options) {
  const std::string store = without_slash(path);
  for (int attempt = 1;; ++attempt) {
    const std::string text = read_root_text(store);
    try {
      return Reader(store, parse_root(text, store)).read(options);
    } catch (const InputError&) {
      // A run that is resumed, or begins anew, may have replaced what was to be read.
      if (attempt == kAttempts || read_bytes(root_path(store)) == text) throw;
    } catch (const std::bad_alloc&) {
      throw InputError(fmt::format("{} holds more draws than fit into memory.", store));
    }
  }
}

}  // namespace poise::zarr
