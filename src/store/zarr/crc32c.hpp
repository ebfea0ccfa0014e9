/// CRC-32C, the checksum behind every chunk of a Zarr store.
#pragma once

#include <cstdint>
#include <string_view>

namespace poise::zarr {

[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);

}  // namespace poise::zarr
