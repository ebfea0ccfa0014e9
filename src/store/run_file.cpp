/// The names of stores, the text of a layout, and the space on the disk.
#include "store/run_file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/types.hpp>
#include "base/file.hpp"
#include "store/zarr/folder.hpp"
#include "store/zarr/reader.hpp"

namespace poise {

bool is_store(const std::string& path) {
  std::error_code ignored;
  return zarr::without_slash(path).ends_with(".zarr") || std::filesystem::is_directory(path + "/.poise", ignored);
}

void check_store_name(const std::string& path) {
  constexpr std::array exported{".nc", ".npz", ".csv"};
  constexpr std::array others{".nc4", ".cdf", ".h5",  ".hdf5", ".npy",  ".json", ".txt",        ".tsv",
                              ".svg", ".png", ".ppm", ".pgm",  ".html", ".pdf",  ".safetensors"};
  const std::filesystem::path name = zarr::without_slash(path);
  const std::string ending = name.extension().string();
  const auto is_among = [&](const auto& endings) {
    return std::any_of(endings.begin(), endings.end(), [&](const char* one) { return same_letters(ending, one); });
  };
  const std::string folder = std::filesystem::path(name).replace_extension(".zarr").string();
  if (is_among(exported)) {
    throw InputError(fmt::format(
        "A run is stored as a folder, so give it a name like {1}; 'poise export {1} {0}' then makes a {2} file.",
        name.string(), folder, ending));
  }
  if (is_among(others)) {
    throw InputError(
        fmt::format("A run is stored as a folder, and {} is the name of a file; {} would do.", name.string(), folder));
  }
}

namespace {

/// Files are no stores; those of earlier versions are told how they are read.
void check_folder(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return;
  std::array<char, 8> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  const std::string_view begin(head.data(), head.size());
  if (begin.starts_with("CDF") || begin.starts_with("\x89HDF\r\n\x1a\n")) {
    throw InputError(fmt::format(
        "{0} is a NetCDF file, and poise reads its own stores only: xarray.open_datatree(\"{0}\") reads it in Python.",
        path));
  }
  throw InputError(fmt::format("{} is a file, and a run is stored as a folder like run.zarr.", path));
}

}  // namespace

StoredRun read_run(const std::string& path, const ReadOptions& options) {
  check_folder(path);
  return zarr::read_store(path, options);
}

Range range_of(std::size_t first, std::size_t most, std::size_t all) {
  first = std::min(first, all);
  return {first, std::min(most, all - first)};
}

nlohmann::json parse_stored(const std::string& text, const char* name, const std::string& path) {
  constexpr int kDeepest = 100;
  if (text.empty()) return nullptr;
  bool deep = false;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    deep = deep || depth > kDeepest;
    return !deep;
  };
  auto value = nlohmann::json::parse(text, watch, false);
  if (value.is_discarded() || deep) {
    throw InputError(fmt::format("{} has an attribute '{}' that is not JSON.", path, name));
  }
  return value;
}

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

std::string human_size(std::uint64_t bytes) {
  constexpr std::array units{"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; size >= 999.5 && unit + 1 < units.size(); ++unit) size /= 1000;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.3g} {}", size, units[unit]);
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

bool has_fraction(const nlohmann::json& json) {
  if (json.is_number_float()) return true;
  return json.is_structured() && std::any_of(json.begin(), json.end(), has_fraction);
}

VariableLayout parse_layout(const nlohmann::json& stored, const std::string& path, std::uint64_t most) {
  const auto fail = [&](const char* what) { throw InputError(fmt::format("{} has a layout with {}.", path, what)); };
  VariableLayout layout;
  std::vector<Observation> observations;
  try {
    if (has_fraction(stored)) fail("numbers that make no sense");
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

void check_space(const std::string& path, const StoreOptions& options, std::uint64_t needed) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto space = fs::space(directory_of(path), error);
  if (error || needed == 0) return;
  std::uint64_t replaced = 0;
  if (fs::is_directory(path, error)) {
    for (const auto& entry : fs::recursive_directory_iterator(path, error)) {
      if (entry.is_regular_file(error)) replaced += entry.file_size(error);
    }
  } else if (fs::is_regular_file(path, error)) {
    replaced = fs::file_size(path, error);
  }
  const std::uint64_t free = space.available + replaced;
  if (needed <= free) return;
  throw InputError(fmt::format(
      "Cannot write {}: {} draws of {} chains need {} and the disk has {} free; --keep monitors stores no draws, "
      "and a larger --thin with fewer --draws stores fewer.",
      path, options.draws, options.chains, human_size(needed), human_size(free)));
}

}  // namespace poise
