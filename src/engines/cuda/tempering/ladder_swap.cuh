/// Swaps of all ladders in one launch, a warp for each.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "engines/cuda/tempering/ladder_swap.hpp"

namespace poise::cuda {

/// A warp that has a ladder.
struct WarpTeam {
  __device__ std::uint32_t rank() const { return threadIdx.x % 32; }
  __device__ std::uint32_t size() const { return 32; }
  __device__ void wait() const { __syncwarp(); }
};

inline constexpr unsigned kSwapThreads = 128;

template <class Gains>
__global__ void swap_kernel(const __grid_constant__ LadderView view, Gains gains, std::uint64_t step) {
  const std::uint32_t ladder = blockIdx.x * (kSwapThreads / 32) + threadIdx.x / 32;
  if (ladder < view.ladders) swap_ladder(view, gains, ladder, step, WarpTeam());
}

template <class Gains>
void launch_swaps_of(const LadderView& view, const Gains& gains, std::uint64_t step, cudaStream_t stream) {
  constexpr unsigned kLadders = kSwapThreads / 32;
  swap_kernel<<<(view.ladders + kLadders - 1) / kLadders, kSwapThreads, 0, stream>>>(view, gains, step);
}

}  // namespace poise::cuda
