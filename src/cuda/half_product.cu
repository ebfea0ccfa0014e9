/// Tiles of the product go through shared memory, the next part of them while the present one is multiplied.
#include "half_product.hpp"

#include <cuda_pipeline.h>
#include <mma.h>

namespace poise::cuda {

namespace {

namespace wmma = nvcuda::wmma;

constexpr unsigned kFragment = 16;
constexpr unsigned kSkew = 8;  // halves between rows, so that they begin in different banks

/// A block has kRows x kColumns entries, a warp kWarpRows x kWarpColumns of them; kInner products a turn.
template <unsigned kRows, unsigned kColumns, unsigned kWarpRows, unsigned kWarpColumns, unsigned kInner>
__global__ void __launch_bounds__(kRows / kWarpRows * (kColumns / kWarpColumns) * 32) multiply(HalfProduct product) {
  constexpr unsigned kThreads = kRows / kWarpRows * (kColumns / kWarpColumns) * 32;
  constexpr unsigned kDown = kWarpRows / kFragment, kAcross = kWarpColumns / kFragment;
  constexpr unsigned kPitch = kInner + kSkew;
  __shared__ __align__(16) __half left[2][kRows * kPitch];
  __shared__ __align__(16) __half right[2][kColumns * kPitch];

  const std::size_t first_row = std::size_t{blockIdx.y} * kRows, first_column = std::size_t{blockIdx.x} * kColumns;
  const auto fetch = [&](unsigned slot, unsigned from) {
    constexpr unsigned kPieces = kInner / 8;  // of sixteen bytes, in a row
    for (unsigned piece = threadIdx.x; piece < kRows * kPieces; piece += kThreads) {
      const unsigned row = piece / kPieces, column = piece % kPieces * 8;
      __pipeline_memcpy_async(&left[slot][row * kPitch + column],
                              product.left + (first_row + row) * product.inner + from + column, 16);
    }
    for (unsigned piece = threadIdx.x; piece < kColumns * kPieces; piece += kThreads) {
      const unsigned row = piece / kPieces, column = piece % kPieces * 8;
      __pipeline_memcpy_async(&right[slot][row * kPitch + column],
                              product.right + (first_column + row) * product.inner + from + column, 16);
    }
    __pipeline_commit();
  };

  const unsigned warp = threadIdx.x / 32;
  const unsigned warp_row = warp / (kColumns / kWarpColumns) * kWarpRows;
  const unsigned warp_column = warp % (kColumns / kWarpColumns) * kWarpColumns;
  wmma::fragment<wmma::accumulator, kFragment, kFragment, kFragment, float> sums[kDown][kAcross];
  for (unsigned i = 0; i < kDown; ++i) {
    for (unsigned j = 0; j < kAcross; ++j) wmma::fill_fragment(sums[i][j], 0.0F);
  }

  fetch(0, 0);
  const unsigned turns = product.inner / kInner;
  for (unsigned turn = 0; turn < turns; ++turn) {
    const unsigned slot = turn % 2;
    if (turn + 1 < turns) {
      fetch(1 - slot, (turn + 1) * kInner);
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
#pragma unroll
    for (unsigned k = 0; k < kInner; k += kFragment) {
      wmma::fragment<wmma::matrix_a, kFragment, kFragment, kFragment, __half, wmma::row_major> a[kDown];
      wmma::fragment<wmma::matrix_b, kFragment, kFragment, kFragment, __half, wmma::col_major> b[kAcross];
#pragma unroll
      for (unsigned i = 0; i < kDown; ++i) {
        wmma::load_matrix_sync(a[i], &left[slot][(warp_row + i * kFragment) * kPitch + k], kPitch);
      }
#pragma unroll
      for (unsigned j = 0; j < kAcross; ++j) {
        wmma::load_matrix_sync(b[j], &right[slot][(warp_column + j * kFragment) * kPitch + k], kPitch);
      }
#pragma unroll
      for (unsigned i = 0; i < kDown; ++i) {
#pragma unroll
        for (unsigned j = 0; j < kAcross; ++j) wmma::mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
  for (unsigned i = 0; i < kDown; ++i) {
    for (unsigned j = 0; j < kAcross; ++j) {
      float* const to = product.out + (first_row + warp_row + i * kFragment) * product.columns + first_column +
                        warp_column + j * kFragment;
      wmma::store_matrix_sync(to, sums[i][j], product.columns, wmma::mem_row_major);
    }
  }
}

template <unsigned kRows, unsigned kColumns, unsigned kWarpRows, unsigned kWarpColumns, unsigned kInner>
void launch(const HalfProduct& product, cudaStream_t stream) {
  const dim3 blocks(product.columns / kColumns, (product.rows + kRows - 1) / kRows);
  multiply<kRows, kColumns, kWarpRows, kWarpColumns, kInner>
      <<<blocks, kRows / kWarpRows*(kColumns / kWarpColumns) * 32, 0, stream>>>(product);
}

}  // namespace

void launch_product(const HalfProduct& product, cudaStream_t stream) {
  // The smaller the tiles, the more of the device has something to do, and the more is read twice.
  if (product.rows <= 64) {
    launch<16, 16, 16, 16, 128>(product, stream);
  } else if (product.rows <= 2048) {
    launch<64, 64, 32, 32, 64>(product, stream);
  } else {
    launch<128, 128, 64, 32, 32>(product, stream);
  }
}

}  // namespace poise::cuda
