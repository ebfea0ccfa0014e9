/// Reading a run back, whether it ended, was killed or is still under way, and whatever became of its bytes since.
///
/// The NetCDF and HDF5 libraries trust what a file says of itself: a few changed bytes make them read and free memory
/// that is not theirs, or never end. Checking the file beforehand would take a second HDF5 library, and a checksum says
/// nothing of files that others wrote or that a killed run left. So the libraries run in a child process, always; here
/// are only checks of what it sends, and these need no trust in it.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <sys/file.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "store/netcdf.hpp"

#include "store/isolated_reader.hpp"
#include "store/netcdf_plan.hpp"
#include "store/netcdf_reader.hpp"

namespace poise {

namespace {

using netcdf::RunPath;

constexpr std::uint64_t kMemoryBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kBytesPerMillisecond = 20'000;  // of a file, by the slowest reader that is not stuck

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw InputError(fmt::format("{} {}.", path, what));
}

RunPath examine(const std::string& path) {
  const auto cannot_read = [&] {
    throw InputError(fmt::format("Cannot read {}: {}.", path, std::generic_category().message(errno)));
  };
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) cannot_read();
  if (!S_ISREG(status.st_mode)) fail(path, "is not a file");
  if (!std::ifstream(path, std::ios::binary)) cannot_read();
  // Where a writer holds it, the library would refuse to open it.
  return {path, std::filesystem::absolute(path).string(), static_cast<std::uint64_t>(status.st_size),
          netcdf::is_held(path, LOCK_SH)};
}

/// Puts a run together from the frames that `send_run` describes.
class Assembler {
 public:
  Assembler(const RunPath& file, IsolatedReader& child) : file_(file), child_(child) {}

  StoredRun run(const ReadOptions& options) {
    StoredRun run;
    Trace& trace = run.trace;
    trace.chains = child_.number();
    const std::size_t in_file = child_.number();
    trace.draws = range_of(options.first_draw, options.most_draws, in_file).count;
    trace.dropped = in_file - trace.draws;
    const std::size_t series = options.series ? entries(trace, 1, sizeof(double)) : 0;
    const nlohmann::json layout = json("layout");
    if (!layout.is_null()) run.layout = parse_layout(layout, file_.path, most_entries());
    run.settings = json("settings");
    run.results = json("results");
    run.has_states = read_shape(run.layout);
    read_names(run.layout);
    const std::uint64_t others = child_.number();
    if (others > file_.file_bytes) fail(file_.path, "declares more monitors than it can hold: it is damaged");
    trace.monitor_names.emplace_back("log_prob");
    for (std::uint64_t i = 0; i < others; ++i) trace.monitor_names.push_back(child_.text(file_.file_bytes));
    trace.acceptance_rate = numbers<double>(series);
    trace.n_steps = numbers<std::int64_t>(series);
    for (std::uint64_t i = 0; i <= others; ++i) trace.monitors.push_back(numbers<double>(series));
    if (run.has_states && options.draws) {
      const auto columns = range_of(options.first_variable, options.most_variables, run.layout.variables);
      trace.x = numbers<std::int8_t>(entries(trace, columns.count, 1));
    }
    return run;
  }

 private:
  [[nodiscard]] std::uint64_t most_entries() const { return file_.file_bytes * kMostDeflation; }

  [[nodiscard]] std::size_t entries(const Trace& trace, std::uint64_t width, std::uint64_t bytes) const {
    const auto count = netcdf::entries_in(file_.file_bytes, trace.chains, trace.draws, width, bytes);
    if (!count) fail(file_.path, "declares more data than it can hold: it is damaged");
    return *count;
  }

  template <typename Number>
  std::vector<Number> numbers(std::size_t count) {
    std::vector<Number> values(count);
    child_.fill(values.data(), count * sizeof(Number));
    return values;
  }

  nlohmann::json json(const char* name) { return parse_stored(child_.text(file_.file_bytes), name, file_.path); }

  /// Whether the file holds draws, after a check that their shape is that of the layout.
  bool read_shape(VariableLayout& layout) {
    const std::uint64_t dimensions = child_.number();
    if (dimensions == 0) return false;
    const std::uint64_t third = child_.number();
    const std::uint64_t fourth = dimensions == 2 ? child_.number() : 1;
    std::uint64_t variables = 0;
    const bool overflow = __builtin_mul_overflow(third, fourth, &variables);
    if (layout.variables == 0 && !overflow && variables <= std::numeric_limits<Index>::max()) {
      layout.variables = static_cast<Index>(variables);
      if (dimensions == 2) {
        layout.rows = static_cast<Index>(third);
        layout.columns = static_cast<Index>(fourth);
      }
    }
    const bool agrees = !overflow && variables == layout.variables &&
                        (dimensions == 1 || (third == layout.rows && fourth == layout.columns));
    if (!agrees) fail(file_.path, "has draws whose shape is not that of its layout");
    return true;
  }

  void read_names(VariableLayout& layout) {
    const std::string joined = child_.text(file_.file_bytes + layout.variables);
    for (std::size_t at = 0; at < joined.size();) {
      const std::size_t end = std::min(joined.find('\0', at), joined.size());
      layout.names.push_back(joined.substr(at, end - at));
      at = end + 1;
    }
    if (!layout.names.empty() && layout.names.size() != layout.variables) {
      fail(file_.path, "has names for other variables than it holds: it is damaged");
    }
  }

  const RunPath& file_;
  IsolatedReader& child_;
};

StoredRun read_once(const RunPath& file, const ReadOptions& options) {
  try {
    IsolationLimits limits;
    limits.memory_bytes = kMemoryBytes + 4 * file.file_bytes;
    limits.processor_time += std::chrono::milliseconds(file.file_bytes / kBytesPerMillisecond);
#ifdef POISE_SANITIZED
    limits.processor_time *= 20;  // checked code is slower, and a fork copies the sanitizer's own memory
#endif
    IsolatedReader child([&](FrameSender& out) { netcdf::send_run(file, options, out); }, limits);
    return Assembler(file, child).run(options);
  } catch (const IsolationFailure& failure) {
    fail(file.path, fmt::format("is a damaged or cut off NetCDF file ({})", failure.what()));
  } catch (const IsolationUnavailable& failure) {
    throw std::runtime_error(fmt::format("Cannot read {}: {}.", file.path, failure.what()));
  } catch (const std::bad_alloc&) {
    fail(file.path, "holds more draws than fit into memory");
  }
}

}  // namespace

StoredRun read_netcdf(const std::string& path, const ReadOptions& options) {
  const std::scoped_lock lock(netcdf::library_lock());
  nc_initialize();  // once, and not in the child: it starts libraries that a forked process must not start
  // A copy taken in the middle of a sync may be torn, and syncs are a second apart.
  for (int attempt = 1;; ++attempt) {
    const RunPath file = examine(path);
    try {
      return read_once(file, options);
    } catch (const InputError&) {
      if (!file.growing || attempt == 10) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace poise
