/// Sets of small gray images: MNIST's files, digits drawn here in their place, and both in black and white.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/types.hpp>

namespace poise {

/// Images of one size, one after the other, each row by row from the top; 0 is the background, 255 the full stroke.
struct IdxImages {
  std::size_t count = 0;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<std::uint8_t> pixels;

  [[nodiscard]] bool operator==(const IdxImages&) const = default;
};

/// Larger files are refused before memory is taken for them.
inline constexpr std::uint64_t kMaxIdxBytes = std::uint64_t{1} << 32;

/// Reads an IDX file of bytes in three dimensions (magic number 0x00000803), plain or gzip, told apart by content. In a
/// directory it is the training images by any of their names: `train-images-idx3-ubyte`, the same with `.gz`, or
/// `train-images.idx3-ubyte`. What is wrong with the file is an InputError.
[[nodiscard]] IdxImages read_idx(const std::string& path);

/// The same from memory; `name` stands for the file in errors.
[[nodiscard]] IdxImages parse_idx(std::string_view content, std::string_view name,
                                  std::uint64_t max_bytes = kMaxIdxBytes);

/// Draws digits of 28 x 28 pixels, about as MNIST looks: image i shows i mod 10 in strokes of random width, shape,
/// size, slant and place. Image i depends on the seed and on i alone.
[[nodiscard]] IdxImages draw_digits(std::size_t count, std::uint64_t seed);

/// 1 where pixel / 255 > threshold, and 0 elsewhere.
[[nodiscard]] std::vector<std::uint8_t> binarise(const IdxImages& images, double threshold);

/// 1 with probability pixel / 255.
[[nodiscard]] std::vector<std::uint8_t> binarise_sampled(const IdxImages& images, Rng& rng);

}  // namespace poise
