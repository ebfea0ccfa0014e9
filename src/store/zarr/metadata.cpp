/// Zarr v3 metadata as JSON. The checksum of the root stands in the root and is taken with zeros at its place.
#include "store/zarr/metadata.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include <poise/types.hpp>
#include "base/file.hpp"
#include "store/run_file.hpp"

namespace poise::zarr {

namespace {

constexpr int kDeepestJson = 32;
constexpr std::size_t kDigits = 16;
constexpr const char* kSharding = "sharding_indexed";
constexpr std::string_view kSumKey = R"("store_checksum":")";  // in a string of JSON its quotes would be escaped

nlohmann::json codec(const char* name) { return {{"name", name}}; }

nlohmann::json codecs_of(const std::string& type) {
  nlohmann::json first = codec(type == "string" ? "vlen-utf8" : "bytes");
  if (type == "int64" || type == "float64") first["configuration"] = {{"endian", "little"}};
  nlohmann::json zstd = codec("zstd");
  zstd["configuration"] = {{"level", 1}, {"checksum", false}};
  return nlohmann::json::array({std::move(first), std::move(zstd), codec("crc32c")});
}

std::string dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

nlohmann::json grid_json(const std::vector<std::size_t>& lengths) {
  return {{"name", "regular"}, {"configuration", {{"chunk_shape", lengths}}}};
}

/// Chunks behind each other in a file that ends with an index of them.
nlohmann::json shard_codecs(const Array& array) {
  nlohmann::json little = codec("bytes");
  little["configuration"] = {{"endian", "little"}};
  nlohmann::json sharding = codec(kSharding);
  sharding["configuration"] = {{"chunk_shape", array.chunk},
                               {"codecs", codecs_of(array.type)},
                               {"index_codecs", nlohmann::json::array({std::move(little), codec("crc32c")})},
                               {"index_location", "end"}};
  return nlohmann::json::array({std::move(sharding)});
}

Array parse_array(const std::string& path, const nlohmann::json& json) {
  Array array;
  array.path = path;
  json.at("data_type").get_to(array.type);
  json.at("shape").get_to(array.shape);
  json.at("chunk_grid").at("configuration").at("chunk_shape").get_to(array.chunk);
  const nlohmann::json& first = json.at("codecs").at(0);
  if (first.at("name") == kSharding) {
    const std::vector<std::size_t> shard = std::move(array.chunk);
    first.at("configuration").at("chunk_shape").get_to(array.chunk);
    if (array.chunk.size() < 2 || shard.size() < 2 || array.chunk[1] == 0) throw InputError("");
    array.sharded = shard[1] / array.chunk[1];
  }
  array.fill = json.at("fill_value");
  json.at("dimension_names").get_to(array.dimensions);
  array.long_name = json.at("attributes").value("long_name", "");
  // Whatever else it may say, it is stored in the one way that this program writes.
  if (array_json(array) != json) throw InputError("");
  return array;
}

/// Where the digits of the checksum are, or nowhere.
std::size_t find_sum(const std::string& text) {
  const std::size_t at = text.find(kSumKey);
  if (at == std::string::npos || text.size() - at < kSumKey.size() + kDigits) return std::string::npos;
  return at + kSumKey.size();
}

std::uint64_t parse_hex(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return error == std::errc() && end == digits.data() + digits.size() ? value : 0;
}

}  // namespace

std::string chunk_path(const Array& array, const std::vector<std::size_t>& chunk) {
  std::vector<std::size_t> file = chunk;
  if (array.sharded > 0) file[1] /= array.sharded;
  return fmt::format("{}/c.{}", array.path, fmt::join(file, "."));
}

nlohmann::json group_json() {
  return {{"zarr_format", 3}, {"node_type", "group"}, {"attributes", nlohmann::json::object()}};
}

nlohmann::json array_json(const Array& array) {
  nlohmann::json attributes = nlohmann::json::object();
  if (!array.long_name.empty()) attributes["long_name"] = array.long_name;
  std::vector<std::size_t> file = array.chunk;
  if (array.sharded > 0) file[1] *= array.sharded;
  return {{"zarr_format", 3},
          {"node_type", "array"},
          {"shape", array.shape},
          {"data_type", array.type},
          {"chunk_grid", grid_json(file)},
          {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "."}}}}},
          {"fill_value", array.fill},
          {"codecs", array.sharded > 0 ? shard_codecs(array) : codecs_of(array.type)},
          {"attributes", std::move(attributes)},
          {"dimension_names", array.dimensions}};
}

const Array* Root::find(const std::string& path) const {
  const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const Array& array) { return array.path == path; });
  return found == arrays.end() ? nullptr : &*found;
}

std::string root_text(const Root& root) {
  nlohmann::json attributes = {{"inference_library", "poise"}, {"inference_library_version", root.version},
                               {"created_at", root.created},   {"sample_dims", {"chain", "draw"}},
                               {"store_format", kStoreFormat}, {"store_checksum", std::string(kDigits, '0')}};
  if (root.state > 0) attributes["store_state"] = fmt::format("{} {:016x}", root.state, root.state_sum);
  if (!root.layout.empty()) attributes["layout"] = root.layout;
  if (!root.settings.empty()) attributes["settings"] = root.settings;
  if (!root.results.empty()) attributes["results"] = root.results;
  if (!root.monitors.empty()) attributes["monitors"] = root.monitors;
  nlohmann::json metadata = nlohmann::json::object();
  for (const Array& array : root.arrays) {
    metadata[array.path.substr(0, array.path.find('/'))] = group_json();
    metadata[array.path] = array_json(array);
  }
  std::string text = dump(
      {{"zarr_format", 3},
       {"node_type", "group"},
       {"attributes", std::move(attributes)},
       {"consolidated_metadata", {{"kind", "inline"}, {"must_understand", false}, {"metadata", std::move(metadata)}}}});
  const std::uint64_t sum = checksum(text);
  text.replace(find_sum(text), kDigits, fmt::format("{:016x}", sum));
  return text;
}

Root parse_root(const std::string& text, const std::string& path) {
  const auto damaged = [&] {
    throw InputError(fmt::format("{}/zarr.json is damaged or was changed by another program.", path));
  };
  bool deep = false;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    deep = deep || depth > kDeepestJson;
    return !deep;
  };
  const auto json = nlohmann::json::parse(text, watch, false);
  if (json.is_discarded() || deep || !json.is_object()) damaged();
  Root root;
  try {
    const auto attributes = json.value("attributes", nlohmann::json::object());
    if (attributes.value("inference_library", "") != "poise" || !attributes.contains("store_format")) {
      throw InputError(fmt::format("{} is a Zarr group, but it does not hold a run of poise.", path));
    }
    if (!attributes.at("store_format").is_number_integer()) damaged();
    if (attributes.at("store_format").get<std::int64_t>() > kStoreFormat) {
      throw InputError(fmt::format("{} was made by a newer version of poise, which is needed to read it.", path));
    }
    if (has_fraction(json)) damaged();
    std::string zeroed = text;
    const std::size_t at = find_sum(text);
    if (at == std::string::npos) damaged();
    zeroed.replace(at, kDigits, std::string(kDigits, '0'));
    if (fmt::format("{:016x}", checksum(zeroed)) != text.substr(at, kDigits)) damaged();
    attributes.at("inference_library_version").get_to(root.version);
    attributes.at("created_at").get_to(root.created);
    root.layout = attributes.value("layout", "");
    root.settings = attributes.value("settings", "");
    root.results = attributes.value("results", "");
    root.monitors = attributes.value("monitors", std::vector<std::string>());
    const std::string state = attributes.value("store_state", "");
    if (!state.empty()) {
      root.state = std::stoull(state);
      root.state_sum = parse_hex(std::string_view(state).substr(std::min(state.size(), state.find(' ') + 1)));
    }
    for (const auto& [name, item] : json.at("consolidated_metadata").at("metadata").items()) {
      if (item.at("node_type") == "array") root.arrays.push_back(parse_array(name, item));
    }
  } catch (const InputError& error) {
    if (*error.what() != '\0') throw;
    damaged();
  } catch (const std::exception&) {
    damaged();
  }
  return root;
}

}  // namespace poise::zarr
