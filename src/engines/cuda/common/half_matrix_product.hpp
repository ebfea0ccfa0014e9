/// A matrix product in half precision with sums in single precision, on tensor cores.
///
/// Every entry is summed in the same order, sixteen products at a time, whatever the shape of the tiles and the place
/// of its row: what a row gets does not depend on how many others there are.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace poise::cuda {

/// Rows and inner dimension are multiples of this in memory, columns of this or the next.
inline constexpr std::size_t kProductTile = 128;
inline constexpr std::size_t kNarrowTile = 112;

constexpr std::size_t padded_to(std::size_t count, std::size_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}
constexpr std::size_t padded_columns(std::size_t count) {
  const std::size_t wide = padded_to(count, kProductTile), narrow = padded_to(count, kNarrowTile);
  return narrow < wide ? narrow : wide;
}

struct HalfProduct {
  const __half* left;   ///< [row][inner]
  const __half* right;  ///< [column][inner]
  __half* out;          ///< [row][column], rounded; at most 60000 in size
  std::uint32_t rows;   ///< that are wanted
  std::uint32_t columns;
  std::uint32_t inner;
};
void launch_product(const HalfProduct& product, cudaStream_t stream);

}  // namespace poise::cuda
