/// Chunks as they are stored: a zstd frame with its CRC-32C behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/zarr/label_frame.hpp"

namespace poise::zarr {

/// Any bytes, compressed by zstd.
[[nodiscard]] std::string encode(std::string_view bytes);

/// Two-valued labels at a bit each, or by zstd where the first of them are alike enough for that to be smaller: a
/// function of the chunk alone. `padding` times `fill` follows.
[[nodiscard]] std::string encode(const LabelBits& labels, std::size_t padding, std::int8_t fill);

/// The bytes of a stored chunk, of which there must be `size`; false where it is damaged.
[[nodiscard]] bool decode(std::string_view stored, char* to, std::size_t size);

/// The same where only a bound of the size is known.
[[nodiscard]] std::optional<std::string> decode(std::string_view stored, std::size_t most);

}  // namespace poise::zarr
