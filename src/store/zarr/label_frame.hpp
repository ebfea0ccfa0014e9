/// Two-valued labels as a zstd frame of one bit each, which every zstd library unpacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace poise::zarr {

/// Rows of labels, a bit for each that is set where it is `high`. Every row begins with a byte of its own.
struct LabelBits {
  std::span<const std::uint8_t> bits;
  std::size_t rows = 0;
  std::size_t variables = 0;
  std::int8_t low = 0;
  std::int8_t high = 1;

  [[nodiscard]] std::size_t row_bytes() const { return (variables + 7) / 8; }
};

/// Whether labels can be stored as a frame of one bit each: {0, 1} and {-1, 1} can.
[[nodiscard]] bool has_label_frame(std::int8_t low, std::int8_t high);

/// The labels, followed by `padding` times `fill`.
[[nodiscard]] std::string label_frame(const LabelBits& labels, std::size_t padding, std::int8_t fill);

}  // namespace poise::zarr
