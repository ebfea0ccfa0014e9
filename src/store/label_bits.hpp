/// Labels of two kinds as bits.
#pragma once

#include <cstdint>
#include <span>

namespace poise {

/// Writes a bit for each label, set where it is `high`, eight to a byte and the first lowest; gives whether all are one
/// of the two. The bits behind the last label are zero.
bool pack_labels(std::span<const std::int8_t> labels, std::int8_t low, std::int8_t high, std::uint8_t* to);

/// Labels from their bits.
void unpack_labels(const std::uint8_t* bits, std::int8_t low, std::int8_t high, std::span<std::int8_t> to);

}  // namespace poise
