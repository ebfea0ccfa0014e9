/// Labels of two-valued variables, a bit for each.
#pragma once

#include <cstdint>
#include <span>

#include <poise/trace.hpp>

namespace poise {

/// The labels of two-valued variables; alike where a variable has more levels, and nothing is packed.
struct BitLabels {
  std::int8_t low = 0;
  std::int8_t high = 0;

  [[nodiscard]] bool has_bits() const { return low != high; }
};
[[nodiscard]] BitLabels bit_labels(const VariableLayout& layout);

/// Writes a bit for each label, set where it is `high`, eight to a byte and the first lowest; gives whether all are one
/// of the two. The bits behind the last label are zero.
bool pack_labels(std::span<const std::int8_t> labels, std::int8_t low, std::int8_t high, std::uint8_t* to);

/// Labels from their bits.
void unpack_labels(const std::uint8_t* bits, std::int8_t low, std::int8_t high, std::span<std::int8_t> to);

}  // namespace poise
