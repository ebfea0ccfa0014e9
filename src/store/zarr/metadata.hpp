/// What a Zarr store says of itself: the root zarr.json, which lists all groups and arrays, and theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace poise::zarr {

/// The format of the store that this version writes and the newest that it reads.
inline constexpr int kStoreFormat = 1;

struct Array {
  std::string path;  ///< posterior/x
  std::string type;  ///< int8, int64, float64 or string
  std::vector<std::size_t> shape;
  std::vector<std::size_t> chunk;
  nlohmann::json fill;
  std::vector<std::string> dimensions;
  std::string long_name;    ///< empty: none
  std::size_t sharded = 0;  ///< chunks of consecutive draws in a file; 0: each is a file

  bool operator==(const Array&) const = default;
};

/// The fill value of integers that count; no number of steps is negative.
inline constexpr std::int64_t kNoCount = -1;

/// posterior/x and {0, 3, 0} to posterior/x/c.0.3.0, or to the shard that has this chunk.
[[nodiscard]] std::string chunk_path(const Array& array, const std::vector<std::size_t>& chunk);

/// The zarr.json of an array, or of a group.
[[nodiscard]] nlohmann::json array_json(const Array& array);
[[nodiscard]] nlohmann::json group_json();

/// What the root names. `state` is the number of the state file that goes with it, 0 for none.
struct Root {
  std::uint64_t state = 0;
  std::uint64_t state_sum = 0;
  std::string version;
  std::string created;
  std::string layout;  ///< JSON texts, as in every file of a run; empty: not there yet
  std::string settings;
  std::string results;
  std::vector<std::string> monitors;  ///< paths of their arrays, log_prob first
  std::vector<Array> arrays;

  [[nodiscard]] const Array* find(const std::string& path) const;
};

/// The root zarr.json, with a checksum of its own.
[[nodiscard]] std::string root_text(const Root& root);

/// The root that was written so. Throws an InputError whose sentence begins with `path`.
[[nodiscard]] Root parse_root(const std::string& text, const std::string& path);

}  // namespace poise::zarr
