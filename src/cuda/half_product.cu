/// Tiles of the product go through shared memory, the next part of them while the present one is multiplied.
#include "half_product.hpp"

#include <cuda_pipeline.h>
#include <mma.h>

#include "launch.cuh"

namespace poise::cuda {

namespace {

namespace wmma = nvcuda::wmma;

constexpr unsigned kFragment = 16;
constexpr unsigned kSkew = 8;         // halves between rows, so that they begin in different banks
constexpr float kLargest = 60000.0F;  // that is stored

/// A block has kRows x kColumns entries, a warp kWarpRows x kWarpColumns of them; kInner products a turn, of which
/// kAhead are on their way.
template <unsigned kRows, unsigned kColumns, unsigned kWarpRows, unsigned kWarpColumns, unsigned kInner,
          unsigned kAhead>
struct Tile {
  static constexpr unsigned rows = kRows, columns = kColumns, warp_rows = kWarpRows, warp_columns = kWarpColumns;
  static constexpr unsigned inner = kInner;
  static constexpr unsigned slots = kAhead + 1;
  static constexpr unsigned threads = rows / warp_rows * (columns / warp_columns) * 32;
  static constexpr unsigned pitch = inner + kSkew;
  static constexpr unsigned tiles = slots * (rows + columns) * pitch * sizeof(__half);
  static constexpr unsigned sums = rows * columns * sizeof(float);
  static constexpr unsigned bytes = tiles > sums ? tiles : sums;
};

template <class Shape>
__global__ void __launch_bounds__(Shape::threads) multiply(HalfProduct product) {
  constexpr unsigned kRows = Shape::rows, kColumns = Shape::columns, kInner = Shape::inner, kPitch = Shape::pitch;
  constexpr unsigned kDown = Shape::warp_rows / kFragment, kAcross = Shape::warp_columns / kFragment;
  extern __shared__ __align__(16) __half shared[];
  __half* const left = shared;
  __half* const right = shared + Shape::slots * kRows * kPitch;

  const std::size_t first_row = std::size_t{blockIdx.y} * kRows, first_column = std::size_t{blockIdx.x} * kColumns;
  const unsigned turns = product.inner / kInner;
  const auto fetch = [&](unsigned turn, __half* to, const __half* from, unsigned count) {
    constexpr unsigned kPieces = kInner / 8;  // of sixteen bytes, in a row
    if (turn >= turns) return;
    for (unsigned piece = threadIdx.x; piece < count * kPieces; piece += Shape::threads) {
      const unsigned row = piece / kPieces, column = piece % kPieces * 8;
      __pipeline_memcpy_async(to + (turn % Shape::slots * count + row) * kPitch + column,
                              from + static_cast<std::size_t>(row) * product.inner + turn * kInner + column, 16);
    }
  };
  const auto fetch_left = [&](unsigned turn) { fetch(turn, left, product.left + first_row * product.inner, kRows); };
  const auto fetch_right = [&](unsigned turn) {
    fetch(turn, right, product.right + first_column * product.inner, kColumns);
  };

  const unsigned warp = threadIdx.x / 32;
  const unsigned warp_row = warp / (kColumns / Shape::warp_columns) * Shape::warp_rows;
  const unsigned warp_column = warp % (kColumns / Shape::warp_columns) * Shape::warp_columns;
  wmma::fragment<wmma::accumulator, kFragment, kFragment, kFragment, float> sums[kDown][kAcross];
  for (unsigned i = 0; i < kDown; ++i) {
    for (unsigned j = 0; j < kAcross; ++j) wmma::fill_fragment(sums[i][j], 0.0F);
  }

  // The right factor is always the same; the left one is what the launch before has made.
  for (unsigned turn = 0; turn + 1 < Shape::slots; ++turn) fetch_right(turn);
  wait_for_the_one_before();
  for (unsigned turn = 0; turn + 1 < Shape::slots; ++turn) {
    fetch_left(turn);
    __pipeline_commit();
  }
  for (unsigned turn = 0; turn < turns; ++turn) {
    __pipeline_wait_prior(Shape::slots - 2);
    __syncthreads();  // also, nobody reads any more where the next part goes
    fetch_right(turn + Shape::slots - 1);
    fetch_left(turn + Shape::slots - 1);
    __pipeline_commit();
    const __half* const rows = left + (turn % Shape::slots * kRows + warp_row) * kPitch;
    const __half* const columns = right + (turn % Shape::slots * kColumns + warp_column) * kPitch;
#pragma unroll
    for (unsigned k = 0; k < kInner; k += kFragment) {
      wmma::fragment<wmma::matrix_a, kFragment, kFragment, kFragment, __half, wmma::row_major> a[kDown];
      wmma::fragment<wmma::matrix_b, kFragment, kFragment, kFragment, __half, wmma::col_major> b[kAcross];
#pragma unroll
      for (unsigned i = 0; i < kDown; ++i) wmma::load_matrix_sync(a[i], rows + i * kFragment * kPitch + k, kPitch);
#pragma unroll
      for (unsigned j = 0; j < kAcross; ++j) wmma::load_matrix_sync(b[j], columns + j * kFragment * kPitch + k, kPitch);
#pragma unroll
      for (unsigned i = 0; i < kDown; ++i) {
#pragma unroll
        for (unsigned j = 0; j < kAcross; ++j) wmma::mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
      }
    }
  }
  // By way of shared memory, to be rounded.
  __syncthreads();
  auto* const whole = reinterpret_cast<float*>(shared);
  for (unsigned i = 0; i < kDown; ++i) {
    for (unsigned j = 0; j < kAcross; ++j) {
      wmma::store_matrix_sync(whole + (warp_row + i * kFragment) * kColumns + warp_column + j * kFragment, sums[i][j],
                              kColumns, wmma::mem_row_major);
    }
  }
  __syncthreads();
  for (unsigned pair = threadIdx.x; pair < kRows * kColumns / 2; pair += Shape::threads) {
    const unsigned row = pair / (kColumns / 2), column = pair % (kColumns / 2) * 2;
    const float2 two = reinterpret_cast<const float2*>(whole)[pair];
    const auto limit = [](float value) { return fminf(fmaxf(value, -kLargest), kLargest); };
    *reinterpret_cast<__half2*>(product.out + (first_row + row) * product.columns + first_column + column) =
        __floats2half2_rn(limit(two.x), limit(two.y));
  }
}

template <class Shape>
void launch(const HalfProduct& product, cudaStream_t stream) {
  static const cudaError_t allowed = cudaFuncSetAttribute(multiply<Shape>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                          static_cast<int>(Shape::bytes));
  static_cast<void>(allowed);  // a launch that is not allowed fails by itself
  const dim3 blocks(product.columns / Shape::columns, (product.rows + Shape::rows - 1) / Shape::rows);
  launch_after(multiply<Shape>, {blocks, Shape::threads, Shape::bytes, stream}, product);
}

}  // namespace

void launch_product(const HalfProduct& product, cudaStream_t stream) {
  // The smaller the tiles, the more of the device has something to do, and the more is read twice.
  const bool wide = product.columns % kProductTile == 0;
  if (product.rows <= 64) {
    launch<Tile<16, 16, 16, 16, 128, 3>>(product, stream);
  } else if (product.rows <= 2048) {
    if (wide) {
      launch<Tile<64, 64, 32, 32, 64, 2>>(product, stream);
    } else {
      launch<Tile<64, 112, 16, 112, 128, 2>>(product, stream);
    }
  } else if (wide) {
    launch<Tile<128, 128, 64, 64, 32, 2>>(product, stream);
  } else {
    launch<Tile<128, 112, 32, 112, 64, 1>>(product, stream);
  }
}

}  // namespace poise::cuda
