/// A matrix product in half precision with sums in single precision, on tensor cores.
///
/// Every entry is summed in the same order, sixteen products at a time, whatever the shape of the tiles and the place
/// of its row: what a row gets does not depend on how many others there are.
#pragma once

#include <cstdint>

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace poise::cuda {

/// Rows, columns and inner dimension are multiples of this in memory.
inline constexpr std::uint32_t kProductTile = 128;

struct HalfProduct {
  const __half* left;   ///< [row][inner]
  const __half* right;  ///< [column][inner]
  float* out;           ///< [row][column]
  std::uint32_t rows;   ///< that are wanted
  std::uint32_t columns;
  std::uint32_t inner;
};
void launch_product(const HalfProduct& product, cudaStream_t stream);

}  // namespace poise::cuda
