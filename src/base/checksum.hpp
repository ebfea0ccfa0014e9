/// A checksum for files that may be torn or damaged.
#pragma once

#include <cstdint>
#include <string_view>

namespace poise {

/// CRC-64 (that of xz) of bytes, or of bytes that follow others with the checksum `before`.
[[nodiscard]] std::uint64_t checksum(std::string_view bytes, std::uint64_t before = 0);

}  // namespace poise
