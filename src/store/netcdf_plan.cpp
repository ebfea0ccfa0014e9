/// The text of a layout, the chunks and the size of a file before it is written, and whether it can be.
#include "store/netcdf_plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <poise/types.hpp>
#include "base/file.hpp"

namespace poise {

namespace {

constexpr Index kMostLevels = Index{std::numeric_limits<Value>::max()} + 1;

using Observation = std::pair<Index, std::int16_t>;

/// What is wrong with a layout, or nothing. Everything that uses a layout takes these for granted.
const char* flaw(const VariableLayout& layout) {
  if (layout.rows != 0 || layout.columns != 0) {
    if (std::uint64_t{layout.rows} * layout.columns != layout.variables) return "rows and columns that do not fit";
  }
  const auto& levels = layout.cardinalities;
  if (!levels.empty() && levels.size() != layout.variables) return "a wrong number of cardinalities";
  const Index most = levels.empty() ? 2 : *std::max_element(levels.begin(), levels.end());
  const Index least = levels.empty() ? 2 : *std::min_element(levels.begin(), levels.end());
  if (least == 0 || most > kMostLevels) return "cardinalities that make no sense";
  if (!layout.labels.empty() && layout.labels.size() < most) return "too few labels";
  const auto& names = layout.level_names;
  return names.empty() || names.size() == layout.variables ? nullptr : "a wrong number of level names";
}

VariableLayout plain_layout(const nlohmann::json& stored, std::uint64_t most) {
  VariableLayout layout;
  layout.variables = stored.at("variables").get<Index>();
  layout.rows = stored.value("rows", Index{0});
  layout.columns = stored.value("columns", Index{0});
  layout.labels = stored.value("labels", std::vector<std::int8_t>{});
  if (layout.variables > most) return layout;
  if (stored.contains("cardinalities")) {
    const auto& levels = stored.at("cardinalities");
    layout.cardinalities = levels.is_number() ? std::vector<Index>(layout.variables, levels.get<Index>())
                                              : levels.get<std::vector<Index>>();
  }
  layout.level_names = stored.value("level_names", std::vector<std::vector<std::string>>{});
  return layout;
}

}  // namespace

std::string layout_text(const VariableLayout& layout) {
  nlohmann::json json{{"variables", layout.variables}};
  if (layout.is_lattice()) {
    json["rows"] = layout.rows;
    json["columns"] = layout.columns;
  }
  if (!layout.labels.empty()) json["labels"] = layout.labels;
  const auto& levels = layout.cardinalities;
  if (!levels.empty()) {
    // A single cardinality stands for all variables.
    const bool same = std::adjacent_find(levels.begin(), levels.end(), std::not_equal_to<>()) == levels.end();
    json["cardinalities"] = same ? nlohmann::json(levels.front()) : nlohmann::json(levels);
  }
  if (!layout.level_names.empty()) json["level_names"] = layout.level_names;
  if (!layout.observed.empty()) {
    json["observed"] = nlohmann::json::array();
    for (Index i = 0; i < layout.variables; ++i) {
      if (layout.is_observed(i)) json["observed"].push_back({i, layout.observed[i]});
    }
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

VariableLayout parse_layout(const nlohmann::json& stored, const std::string& path, std::uint64_t most) {
  const auto fail = [&](const char* what) { throw InputError(fmt::format("{} has a layout with {}.", path, what)); };
  VariableLayout layout;
  std::vector<Observation> observations;
  try {
    layout = plain_layout(stored, most);
    observations = stored.value("observed", std::vector<Observation>{});
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format("{} has an attribute 'layout' that is not one of poise.", path));
  }
  if (layout.variables > most) fail("more variables than fit into the file");
  if (const char* found = flaw(layout)) fail(found);
  if (stored.contains("observed")) layout.observed.assign(layout.variables, -1);
  for (const auto& [variable, level] : observations) {
    if (variable >= layout.variables || level < 0 || level >= static_cast<int>(kMostLevels)) {
      fail("observations that make no sense");
    }
    layout.observed[variable] = level;
  }
  return layout;
}

namespace netcdf {

namespace {

constexpr std::size_t kChunkDraws = 256;
constexpr std::uint64_t kDeflateAbove = 100 * kMegabyte;
constexpr std::uint64_t kFixedBytes = 100'000;  // headers, attributes and first chunks

std::string human_size(std::uint64_t bytes) {
  constexpr std::array units{"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; size >= 999.5 && unit + 1 < units.size(); ++unit) size /= 1000;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.3g} {}", size, units[unit]);
}

/// Saturates well below the largest number, so that a few such products can be added.
std::uint64_t product(std::initializer_list<std::uint64_t> factors) {
  std::uint64_t result = 1;
  for (const std::uint64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) return std::numeric_limits<std::uint64_t>::max() / 4;
  }
  return std::min(result, std::numeric_limits<std::uint64_t>::max() / 4);
}

[[noreturn]] void cannot_write(const std::string& path, const std::string& reason) {
  throw InputError(fmt::format("Cannot write {}: {}.", path, reason));
}

}  // namespace

std::size_t chunk_draws(std::size_t variables, std::size_t draws) {
  const std::size_t bytes = std::max<std::size_t>(variables, 1);  // of one draw
  const std::size_t fitting = std::clamp<std::size_t>(kChunkBytes / bytes, 1, kChunkDraws);
  return draws == 0 ? fitting : std::min(fitting, draws);
}

std::size_t series_chunk_draws(std::size_t draws) {
  return draws == 0 ? 1024 : std::min<std::size_t>(draws, kSeriesChunk);
}

bool is_deflated(const NetcdfOptions& options) {
  return product({options.chains, options.draws, options.variables}) > kDeflateAbove;
}

bool is_held(const std::string& path, int mode) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool locked = ::flock(descriptor, mode | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return locked;
}

/// Opens PATH for writing without changing it: the only test that asks the file system itself.
void check_writable(const std::string& path) {
  if (path.empty()) throw InputError("The path of the output file is empty.");
  // The NetCDF library takes it for a separator of directories.
  if (path.find('\\') != std::string::npos) cannot_write(path, "its path must not hold a backslash");
  const std::string obstacle = obstacle_at(path);
  if (!obstacle.empty()) cannot_write(path, obstacle);
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) cannot_write(path, "it is not a regular file");
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | (exists ? 0 : O_CREAT | O_EXCL), 0666);
  if (descriptor < 0) cannot_write(path, std::generic_category().message(errno));
  ::close(descriptor);
  if (!exists) ::unlink(path.c_str());
  // Another run that writes to the same file holds a lock on it; creating the file anew would pull it from under it.
  if (exists && is_held(path, LOCK_EX)) cannot_write(path, "another program is writing or reading it just now");
}

void check_space(const std::string& path, const NetcdfOptions& options) {
  const std::uint64_t needed = expected_netcdf_bytes(options);
  std::error_code error;
  const auto space = std::filesystem::space(directory_of(path), error);
  if (error || needed == 0) return;
  const auto replaced = std::filesystem::file_size(path, error);
  const std::uint64_t free = space.available + (error ? 0 : replaced);
  if (needed <= free) return;
  throw InputError(fmt::format(
      "Cannot write {}: {} draws of {} chains need {} and the disk has {} free; --keep monitors stores no draws, "
      "and a larger --thin with fewer --draws stores fewer.",
      path, options.draws, options.chains, human_size(needed), human_size(free)));
}

}  // namespace netcdf

std::uint64_t expected_netcdf_bytes(const NetcdfOptions& options) {
  if (options.draws == 0 || options.chains == 0) return 0;
  using namespace netcdf;
  const std::uint64_t chunk = chunk_draws(options.variables, options.draws);
  const std::uint64_t padded = product({(options.draws - 1) / chunk + 1, chunk});
  std::uint64_t draws = product({options.chains, padded, options.variables});
  if (is_deflated(options)) {
    // Deflate spends at most about one bit more than the plain code of a level, ceil(log2(levels)) bits.
    const std::uint64_t bits = std::bit_width(std::max<std::size_t>(options.levels, 2) - 1) + 1;
    if (bits < 8) draws = draws / 8 * bits;
  }
  const std::uint64_t series = product({options.chains, options.draws, options.monitors + 2, sizeof(double)});
  return draws + series + product({options.draws, 2, sizeof(std::int64_t)}) + kFixedBytes;
}

}  // namespace poise
