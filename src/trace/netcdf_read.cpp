/// Reading a run back from its NetCDF-4 file, whether the run ended, was killed or is still under way.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <poise/trace/netcdf.hpp>

#include "netcdf_call.hpp"

namespace poise {

using netcdf::call;

namespace {

/// No deflate stream is longer than this many times its compressed form, and no other data is packed at all.
constexpr std::uint64_t kMostDeflation = 1032;

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) { open(); }
  ~Reader() {
    if (id_ >= 0) nc_close(id_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  StoredRun read(const ReadOptions& options);

 private:
  struct Group {
    const char* name = "";
    int id = -1;
    std::array<int, 2> dimensions{};
    std::size_t chains = 0;
    std::size_t draws = 0;
  };

  void open();
  [[nodiscard]] int open_copy(const std::string& absolute);
  [[noreturn]] void fail(const std::string& what) const { throw InputError(fmt::format("{} {}.", path_, what)); }
  [[nodiscard]] Group group(const char* name) const;
  [[nodiscard]] std::size_t complete_draws(const Group& group) const;
  [[nodiscard]] std::optional<std::string> text(int group, int variable, const char* name) const;
  [[nodiscard]] nlohmann::json json(const char* name) const;
  [[nodiscard]] int variable(const Group& group, const char* name, nc_type type) const;
  [[nodiscard]] bool is_series(const Group& group, int variable) const;
  [[nodiscard]] std::vector<double> doubles(const Group& group, int variable) const;
  [[nodiscard]] std::size_t entries(std::uint64_t width, std::size_t bytes) const;
  void read_series(StoredRun& run) const;
  void read_layout(VariableLayout& layout) const;
  void read_x(StoredRun& run, const ReadOptions& options) const;

  std::string path_;
  std::uint64_t file_bytes_ = 0;
  std::vector<char> image_;  // of a file that another program is writing
  int id_ = -1;
  Group posterior_;
  Group sample_stats_;
  std::size_t chains_ = 0;
  std::size_t draws_ = 0;
};

/// Whether a writer holds the file; the library would then refuse to open it.
bool is_being_written(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool locked = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return locked;
}

/// A copy in memory needs no lock. One taken in the middle of a sync may be torn, and syncs are a second apart.
int Reader::open_copy(const std::string& absolute) {
  int result = NC_NOERR;
  for (int attempt = 0; attempt < 10; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::ifstream stream(absolute, std::ios::binary);
    std::error_code error;
    file_bytes_ = std::filesystem::file_size(absolute, error);
    if (error) file_bytes_ = 0;
    image_.resize(file_bytes_);
    stream.read(image_.data(), static_cast<std::streamsize>(image_.size()));
    image_.resize(static_cast<std::size_t>(stream.gcount()));
    result = nc_open_mem(absolute.c_str(), NC_NOWRITE, image_.size(), image_.data(), &id_);
    if (result == NC_NOERR) break;
  }
  return result;
}

void Reader::open() {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) {
    throw InputError(fmt::format("Cannot read {}: {}.", path_, std::generic_category().message(errno)));
  }
  if (!S_ISREG(status.st_mode)) fail("is not a file");
  std::ifstream stream(path_, std::ios::binary);
  if (!stream) throw InputError(fmt::format("Cannot read {}: {}.", path_, std::generic_category().message(errno)));
  file_bytes_ = static_cast<std::uint64_t>(status.st_size);
  const std::string absolute = std::filesystem::absolute(path_).string();
  const bool growing = is_being_written(path_);
  const int result = growing ? open_copy(absolute) : nc_open(absolute.c_str(), NC_NOWRITE, &id_);
  if (result == NC_NOERR) return;
  id_ = -1;
  if (growing) fail("is being written by another program just now and cannot be read; try again in a moment");
  std::array<char, 4> magic{};
  stream.read(magic.data(), magic.size());
  if (result == NC_ENOTNC || std::string(magic.data(), magic.size()) != "\x89HDF") fail("is not a NetCDF file");
  fail(fmt::format("is a damaged or cut off NetCDF file ({})", nc_strerror(result)));
}

Reader::Group Reader::group(const char* name) const {
  Group group;
  group.name = name;
  // A classic file has no groups, and the library gives the file itself for any.
  if (nc_inq_grp_ncid(id_, name, &group.id) != NC_NOERR || group.id == id_) {
    fail(fmt::format("has no group '{}': it does not hold a run of poise", name));
  }
  const std::array<const char*, 2> names{"chain", "draw"};
  std::array<std::size_t, 2> lengths{};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (nc_inq_dimid(group.id, names[i], &group.dimensions[i]) != NC_NOERR) {
      fail(fmt::format("has no dimension '{}' in group '{}': it does not hold a run of poise", names[i], name));
    }
    call(nc_inq_dimlen(group.id, group.dimensions[i], &lengths[i]));
  }
  group.chains = lengths[0];
  group.draws = lengths[1];
  return group;
}

/// Draws whose numbers were written; the writer puts these last, so a torn end is left out.
std::size_t Reader::complete_draws(const Group& group) const {
  int draw = -1;
  if (nc_inq_varid(group.id, "draw", &draw) != NC_NOERR) return group.draws;
  int dimensions = 0;
  int dimension = -1;
  call(nc_inq_varndims(group.id, draw, &dimensions));
  if (dimensions == 1) call(nc_inq_vardimid(group.id, draw, &dimension));
  if (dimension != group.dimensions[1] || group.draws / kMostDeflation > file_bytes_) {
    fail(fmt::format("has draw numbers of a wrong shape in group '{}'", group.name));
  }
  std::vector<long long> numbers(group.draws);
  if (!numbers.empty()) call(nc_get_var_longlong(group.id, draw, numbers.data()));
  return static_cast<std::size_t>(std::find(numbers.begin(), numbers.end(), NC_FILL_INT64) - numbers.begin());
}

std::optional<std::string> Reader::text(int group, int variable, const char* name) const {
  nc_type type = NC_NAT;
  std::size_t length = 0;
  if (nc_inq_att(group, variable, name, &type, &length) != NC_NOERR) return std::nullopt;
  if (type == NC_CHAR) {
    std::string value(length, '\0');
    if (length > 0) call(nc_get_att_text(group, variable, name, value.data()));
    while (!value.empty() && value.back() == '\0') value.pop_back();
    return value;
  }
  if (type != NC_STRING || length != 1) fail(fmt::format("has an attribute '{}' that is not text", name));
  char* stored = nullptr;
  call(nc_get_att_string(group, variable, name, &stored));
  std::string value = stored == nullptr ? "" : stored;
  nc_free_string(1, &stored);
  return value;
}

nlohmann::json Reader::json(const char* name) const {
  const auto stored = text(id_, NC_GLOBAL, name);
  if (!stored || stored->empty()) return nullptr;
  auto value = nlohmann::json::parse(*stored, nullptr, false);
  if (value.is_discarded()) fail(fmt::format("has an attribute '{}' that is not JSON", name));
  return value;
}

bool Reader::is_series(const Group& group, int variable) const {
  int count = 0;
  call(nc_inq_varndims(group.id, variable, &count));
  std::array<int, 2> dimensions{};
  if (count != 2) return false;
  call(nc_inq_vardimid(group.id, variable, dimensions.data()));
  return dimensions == group.dimensions;
}

/// A variable of sample_stats that every run has.
int Reader::variable(const Group& group, const char* name, nc_type type) const {
  int found = -1;
  if (nc_inq_varid(group.id, name, &found) != NC_NOERR) {
    fail(fmt::format("has no variable '{}' in group '{}': it does not hold a run of poise", name, group.name));
  }
  nc_type stored = NC_NAT;
  call(nc_inq_vartype(group.id, found, &stored));
  if (stored != type) {
    fail(fmt::format("has a variable '{}' in group '{}' that is not of type {}", name, group.name,
                     type == NC_DOUBLE ? "double" : "int64"));
  }
  if (!is_series(group, found)) {
    fail(fmt::format("has a variable '{}' in group '{}' whose dimensions are not (chain, draw)", name, group.name));
  }
  return found;
}

/// chains * draws * width, after a check that the file can hold so many entries at all.
std::size_t Reader::entries(std::uint64_t width, std::size_t bytes) const {
  std::uint64_t count = chains_;
  std::uint64_t size = 0;
  const bool overflow = __builtin_mul_overflow(count, std::uint64_t{draws_}, &count) ||
                        __builtin_mul_overflow(count, width, &count) ||
                        __builtin_mul_overflow(count, std::uint64_t{bytes}, &size);
  if (overflow || size / kMostDeflation > file_bytes_) fail("declares more data than it can hold: it is damaged");
  return static_cast<std::size_t>(count);
}

std::vector<double> Reader::doubles(const Group& group, int variable) const {
  std::vector<double> values(entries(1, sizeof(double)));
  const std::array<std::size_t, 2> start{};
  const std::array<std::size_t, 2> count{chains_, draws_};
  if (!values.empty()) call(nc_get_vara_double(group.id, variable, start.data(), count.data(), values.data()));
  return values;
}

void Reader::read_series(StoredRun& run) const {
  Trace& trace = run.trace;
  trace.chains = chains_;
  trace.draws = draws_;
  trace.monitor_names.emplace_back("log_prob");
  trace.monitors.push_back(doubles(sample_stats_, variable(sample_stats_, "lp", NC_DOUBLE)));
  trace.acceptance_rate = doubles(sample_stats_, variable(sample_stats_, "acceptance_rate", NC_DOUBLE));

  const int n_steps = variable(sample_stats_, "n_steps", NC_INT64);
  std::vector<long long> steps(entries(1, sizeof(long long)));
  const std::array<std::size_t, 2> start{};
  const std::array<std::size_t, 2> count{chains_, draws_};
  if (!steps.empty()) call(nc_get_vara_longlong(sample_stats_.id, n_steps, start.data(), count.data(), steps.data()));
  trace.n_steps.assign(steps.begin(), steps.end());

  int variables = 0;
  call(nc_inq_varids(posterior_.id, &variables, nullptr));
  std::vector<int> ids(static_cast<std::size_t>(variables));
  call(nc_inq_varids(posterior_.id, &variables, ids.data()));
  for (const int id : ids) {
    nc_type type = NC_NAT;
    call(nc_inq_vartype(posterior_.id, id, &type));
    if (type != NC_DOUBLE || !is_series(posterior_, id)) continue;
    std::array<char, NC_MAX_NAME + 1> name{};
    call(nc_inq_varname(posterior_.id, id, name.data()));
    trace.monitor_names.push_back(text(posterior_.id, id, "long_name").value_or(name.data()));
    trace.monitors.push_back(doubles(posterior_, id));
  }
}

void Reader::read_layout(VariableLayout& layout) const {
  const auto stored = json("layout");
  if (stored.is_null()) return;
  try {
    layout.variables = stored.at("variables").get<Index>();
    layout.rows = stored.value("rows", Index{0});
    layout.columns = stored.value("columns", Index{0});
    layout.labels = stored.value("labels", std::vector<std::int8_t>{});
    if (stored.contains("cardinalities")) {
      const auto& levels = stored.at("cardinalities");
      const bool same = levels.is_number();
      // A damaged number of variables must not decide how much memory is taken.
      if (same && layout.variables / kMostDeflation > file_bytes_) fail("has a layout too large for the file");
      layout.cardinalities =
          same ? std::vector<Index>(layout.variables, levels.get<Index>()) : levels.get<std::vector<Index>>();
      if (layout.cardinalities.size() != layout.variables) fail("has a layout with a wrong number of cardinalities");
    }
    if (stored.contains("level_names")) {
      layout.level_names = stored.at("level_names").get<std::vector<std::vector<std::string>>>();
      if (layout.level_names.size() != layout.variables) fail("has a layout with a wrong number of level names");
    }
    if (stored.contains("observed")) {
      if (layout.variables / kMostDeflation > file_bytes_) fail("has a layout too large for the file");
      layout.observed.assign(layout.variables, -1);
      for (const auto& [variable, level] : stored.at("observed").get<std::vector<std::pair<Index, std::int16_t>>>()) {
        if (variable >= layout.variables || level < 0) fail("has a layout with observations that make no sense");
        layout.observed[variable] = level;
      }
    }
  } catch (const nlohmann::json::exception&) {
    fail("has an attribute 'layout' that is not one of poise");
  }
}

void Reader::read_x(StoredRun& run, const ReadOptions& options) const {
  int x = -1;
  if (nc_inq_varid(posterior_.id, "x", &x) != NC_NOERR) return;
  nc_type type = NC_NAT;
  int dimensions = 0;
  call(nc_inq_vartype(posterior_.id, x, &type));
  call(nc_inq_varndims(posterior_.id, x, &dimensions));
  if (type != NC_BYTE) fail("has a variable 'x' in group 'posterior' that is not of type byte");
  const auto wrong_dimensions = [&] {
    fail(
        "has a variable 'x' in group 'posterior' whose dimensions are neither (chain, draw, x_variable) nor "
        "(chain, draw, row, column)");
  };
  if (dimensions != 3 && dimensions != 4) wrong_dimensions();
  std::array<int, 4> ids{};
  std::array<std::size_t, 4> count{chains_, draws_, 1, 1};
  call(nc_inq_vardimid(posterior_.id, x, ids.data()));
  if (ids[0] != posterior_.dimensions[0] || ids[1] != posterior_.dimensions[1]) wrong_dimensions();
  for (std::size_t i = 2; i < static_cast<std::size_t>(dimensions); ++i) {
    call(nc_inq_dimlen(posterior_.id, ids[i], &count[i]));
    if (count[i] == 0 || count[i] > std::numeric_limits<Index>::max()) wrong_dimensions();
  }
  VariableLayout& layout = run.layout;
  const std::uint64_t variables = std::uint64_t{count[2]} * count[3];
  if (layout.variables == 0 && variables <= std::numeric_limits<Index>::max()) {
    layout.variables = static_cast<Index>(variables);
    if (dimensions == 4) {
      layout.rows = static_cast<Index>(count[2]);
      layout.columns = static_cast<Index>(count[3]);
    }
  }
  const bool agrees =
      variables == layout.variables && (dimensions == 3 || (count[2] == layout.rows && count[3] == layout.columns));
  if (!agrees) fail("has draws whose shape is not that of its layout");

  int names = -1;
  if (nc_inq_varid(posterior_.id, "x_variable", &names) == NC_NOERR) {
    nc_type names_type = NC_NAT;
    int names_dimensions = 0;
    int dimension = -1;
    call(nc_inq_vartype(posterior_.id, names, &names_type));
    call(nc_inq_varndims(posterior_.id, names, &names_dimensions));
    if (names_dimensions == 1) call(nc_inq_vardimid(posterior_.id, names, &dimension));
    if (names_type == NC_STRING && dimension == ids[2] && variables / kMostDeflation <= file_bytes_) {
      std::vector<char*> stored(layout.variables, nullptr);
      call(nc_get_var_string(posterior_.id, names, stored.data()));
      for (const char* name : stored) layout.names.emplace_back(name == nullptr ? "" : name);
      nc_free_string(stored.size(), stored.data());
    }
  }
  if (!options.draws) return;
  run.trace.x.resize(entries(variables, 1));
  const std::array<std::size_t, 4> start{};
  if (run.trace.x.empty()) return;
  call(nc_get_vara_schar(posterior_.id, x, start.data(), count.data(),
                         reinterpret_cast<signed char*>(run.trace.x.data())));
}

StoredRun Reader::read(const ReadOptions& options) {
  posterior_ = group("posterior");
  sample_stats_ = group("sample_stats");
  if (posterior_.chains != sample_stats_.chains) fail("has different numbers of chains in its groups");
  chains_ = posterior_.chains;
  draws_ = std::min(complete_draws(posterior_), complete_draws(sample_stats_));
  StoredRun run;
  run.settings = json("settings");
  run.results = json("results");
  read_layout(run.layout);
  read_series(run);
  read_x(run, options);
  return run;
}

}  // namespace

StoredRun read_netcdf(const std::string& path, const ReadOptions& options) {
  const std::scoped_lock lock(netcdf::library_lock());
  try {
    return Reader(path).read(options);
  } catch (const netcdf::Failure& failure) {
    throw InputError(fmt::format("{} is damaged: {}.", path, failure.what()));
  } catch (const std::bad_alloc&) {
    throw InputError(fmt::format("{} holds more draws than fit into memory.", path));
  }
}

}  // namespace poise
