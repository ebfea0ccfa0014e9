/// A shard: chunks behind each other, and an index at the end that says where each of them is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace poise::zarr {

/// Of a chunk in its shard.
struct Place {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;

  bool operator==(const Place&) const = default;
};
/// Of a chunk that is not there.
inline constexpr Place kNoPlace{~std::uint64_t{0}, ~std::uint64_t{0}};

/// The end of a shard of so many chunks, of which the first ones are there.
[[nodiscard]] std::string index_of(std::span<const Place> places, std::size_t chunks);

/// A shard that is read. What its index says is compared with the file.
class ShardFile {
 public:
  enum class Found { missing, damaged, there };

  /// Throws a std::runtime_error where it cannot be known whether there is a file.
  ShardFile(const std::string& path, std::size_t chunks);
  ~ShardFile();
  ShardFile(const ShardFile&) = delete;
  ShardFile& operator=(const ShardFile&) = delete;

  /// The bytes of the chunk itself are not looked at.
  [[nodiscard]] Found find(std::size_t chunk) const;
  /// Of a chunk that was found to be there.
  [[nodiscard]] Place place(std::size_t chunk) const { return places_[chunk]; }
  /// Fewer bytes than that where they cannot be read.
  [[nodiscard]] std::string read(std::size_t chunk) const;

 private:
  int descriptor_ = -1;
  std::uint64_t end_ = 0;      // of the chunks
  std::vector<Place> places_;  // empty where there is no index
};

}  // namespace poise::zarr
