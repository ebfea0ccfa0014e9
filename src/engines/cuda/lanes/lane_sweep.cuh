/// Sweeps of chains across lanes: a thread has two chains, and the threads of a warp have neighbouring chains of one
/// variable, or of a few where chains are few.
#pragma once

#include <type_traits>

#include "engines/cuda/common/kernel.cuh"
#include "engines/cuda/lanes/lane_kernels.hpp"

namespace poise::cuda {

constexpr unsigned kMostThreads = 1024;

__device__ inline ImageView view_of(const PackedImage& image, const unsigned char* bytes) {
  return {reinterpret_cast<const ImageVariable*>(bytes),
          reinterpret_cast<const ImagePair*>(bytes + image.pairs),
          reinterpret_cast<const ImageTerm*>(bytes + image.terms),
          reinterpret_cast<const ImageOthers*>(bytes + image.others),
          reinterpret_cast<const float*>(bytes + image.tables),
          image.has_zeros ? reinterpret_cast<const float*>(bytes + image.zeros) : nullptr,
          image.has_zeros ? reinterpret_cast<const std::uint32_t*>(bytes + image.zero_tables) : nullptr};
}

/// Bits of a pair's lanes that are chains.
__device__ inline unsigned chains_of(const LaneTileView& view, std::uint32_t pair) {
  const auto is_chain = [&](std::uint32_t lane) { return lane >= view.first_lane && lane < view.end_lane; };
  return (is_chain(2 * pair) ? 1U : 0U) | (is_chain(2 * pair + 1) ? 2U : 0U);
}

/// Rows of words between global and shared memory, by all threads of a block.
template <bool kLoad>
__device__ inline void move_rows(std::uint16_t* global, std::uint16_t* shared, std::uint32_t rows, std::uint32_t pairs,
                                 const LaneTileView& view) {
  const std::uint32_t first = blockIdx.x * pairs;
  for (std::uint32_t k = threadIdx.x; k < rows * pairs; k += blockDim.x) {
    const std::uint32_t pair = first + k % pairs;
    if (pair >= view.pairs) continue;
    std::uint16_t& there = global[static_cast<std::size_t>(k / pairs) * view.pairs + pair];
    if (kLoad) {
      shared[k] = there;
    } else {
      there = shared[k];
    }
  }
}

/// Chains of a kernel: plain ones, or replicas of ladders.
template <bool kHeated, class Offset>
using ChainsOf = std::conditional_t<kHeated, HeatedChains<Offset>, TwoChains<Offset>>;

/// One pair of chains: all of it that does not depend on where its levels are.
template <class Two>
__device__ inline Two chains_at(const LaneTileView& view, std::uint32_t pair, std::uint64_t sweep) {
  Two two{};
  if constexpr (Two::kHeated) {
    two.sums = view.sums != nullptr ? view.sums + 2 * pair / view.heat.rungs : nullptr;
    two.sums_stride = view.heat.sums_stride;
    for (unsigned c = 0; c < 2; ++c) {
      const std::uint32_t rung = view.heat.rung_of[2 * static_cast<std::size_t>(pair) + c];
      two.heat[c] = view.heat.heats[rung];
      if (rung + 1 == view.heat.rungs) two.cold |= 1U << c;
    }
  } else {
    two.sums = view.sums != nullptr ? view.sums + 2 * static_cast<std::size_t>(pair) : nullptr;
    two.sums_stride = 2 * static_cast<std::size_t>(view.pairs);
  }
  two.key = view.keys[pair];
  two.chains = chains_of(view, pair);
  two.scattered = sweep * view.words * kWordStep64;
  return two;
}

/// Positions from `first` on, every `step`-th.
struct Positions {
  std::uint32_t first;
  std::uint32_t end;
  std::uint32_t step;
};

/// Where a pair of chains is.
template <class Offset>
struct PairMemory {
  std::uint16_t* levels;
  std::uint16_t* counts;
  Offset stride;
  std::uint32_t pair;
};

/// Settles what a thread has updated, wherever floats were not sure. Takes little, so that those who call it rarely
/// keep their registers.
template <bool kHeated, bool kMany, class Offset>
__device__ __noinline__ void settle(const LaneTileView& view, PairMemory<Offset> memory, std::uint64_t sweep,
                                    Positions positions) {
  auto two = chains_at<ChainsOf<kHeated, Offset>>(view, memory.pair, sweep);
  two.levels = memory.levels;
  two.counts = memory.counts;
  two.stride = memory.stride;
  for (std::uint32_t k = positions.first; k < positions.end; k += positions.step) {
    settle_both<kMany>(view_of(view.image, view.image.bytes), view.exact, k, two);
  }
}

template <bool kHeated, bool kImageInShared, bool kMany, bool kAverage>
__global__ void __launch_bounds__(kMostThreads, 1)
    resident_kernel(const __grid_constant__ LaneTileView view, std::uint32_t pairs, std::uint64_t first_sweep,
                    std::uint32_t sweeps) {
  extern __shared__ uint4 memory[];
  auto* const levels = reinterpret_cast<std::uint16_t*>(memory);
  std::uint16_t* const counts = levels + static_cast<std::size_t>(view.positions) * pairs;
  move_rows<true>(view.levels, levels, view.positions, pairs, view);
  if (view.counts != nullptr) move_rows<true>(view.counts, counts, view.entries, pairs, view);
  ImageView image = view_of(view.image, view.image.bytes);
  if constexpr (kImageInShared) {
    const std::size_t rows = view.positions + (view.counts != nullptr ? view.entries : 0U);
    uint4* const own = memory + (rows * pairs * sizeof(std::uint16_t) + 15) / 16;
    const auto* const from = reinterpret_cast<const uint4*>(view.image.bytes);
    for (std::size_t k = threadIdx.x; k < view.image.size / sizeof(uint4); k += blockDim.x) own[k] = from[k];
    image = view_of(view.image, reinterpret_cast<const unsigned char*>(own));
  }
  const std::uint32_t own = threadIdx.x % pairs;
  const std::uint32_t slot = threadIdx.x / pairs, slots = blockDim.x / pairs;
  const std::uint32_t pair = blockIdx.x * pairs + own;
  const bool idle = pair >= view.pairs;
  ChainsOf<kHeated, std::uint32_t> two{};
  if (!idle) two = chains_at<ChainsOf<kHeated, std::uint32_t>>(view, pair, first_sweep);
  two.levels = levels + own;
  two.counts = view.counts != nullptr ? counts + own : nullptr;
  two.stride = pairs * static_cast<std::uint32_t>(sizeof(std::uint16_t));
  __syncthreads();
  for (std::uint32_t sweep = 0; sweep < sweeps; ++sweep) {
    std::uint32_t first = 0;
    for (std::uint32_t colour = 1; colour <= view.num_colours; ++colour) {
      const std::uint32_t end = view.colours[colour];
      if (!idle) {
        bool unsure = false;
        for (std::uint32_t k = first + slot; k < end; k += slots) {
          if (update_both<kMany, kAverage>(image, k, two)) unsure = true;
        }
        if (unsure) {
          settle<kHeated, kMany>(view, PairMemory<std::uint32_t>{two.levels, two.counts, two.stride, pair},
                                 first_sweep + sweep, Positions{first + slot, end, slots});
        }
      }
      first = end;
      __syncthreads();
    }
    two.scattered += view.words * kWordStep64;
    if (view.record.is_due(sweep)) {
      move_rows<false>(view.record.slot(sweep), levels, view.positions, pairs, view);
      __syncthreads();
    }
  }
  move_rows<false>(view.levels, levels, view.positions, pairs, view);
  if (view.counts != nullptr) move_rows<false>(view.counts, counts, view.entries, pairs, view);
}

template <bool kHeated, bool kMany, bool kAverage>
__global__ void __launch_bounds__(256) colour_kernel(const __grid_constant__ LaneTileView view, std::uint64_t sweep,
                                                     std::uint32_t first, std::uint32_t end) {
  const std::uint32_t pair = blockIdx.y * blockDim.x + threadIdx.x;
  const std::uint32_t k = first + blockIdx.x * blockDim.y + threadIdx.y;
  if (pair >= view.pairs || k >= end) return;
  auto two = chains_at<ChainsOf<kHeated, std::size_t>>(view, pair, sweep);
  two.levels = view.levels + pair;
  two.counts = view.counts != nullptr ? view.counts + pair : nullptr;
  two.stride = view.pairs * sizeof(std::uint16_t);
  if (update_both<kMany, kAverage>(view_of(view.image, view.image.bytes), k, two)) {
    settle<kHeated, kMany>(view, PairMemory<std::size_t>{two.levels, two.counts, two.stride, pair}, sweep,
                           Positions{k, k + 1, 1});
  }
}

template <class Kernel>
bool allow_shared(Kernel kernel, std::size_t bytes) {
  constexpr std::size_t kAlways = 48 * 1024;
  if (bytes <= kAlways) return true;
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
  return status == cudaSuccess;
}

template <bool kHeated>
bool launch_resident(const LaneTileView& view, const LanePlan& plan, std::uint64_t first_sweep, std::uint32_t sweeps) {
  using Kernel = void (*)(LaneTileView, std::uint32_t, std::uint64_t, std::uint32_t);
  static constexpr Kernel kernels[2][2][2] = {
      {{resident_kernel<kHeated, false, false, false>, resident_kernel<kHeated, false, false, true>},
       {resident_kernel<kHeated, false, true, false>, resident_kernel<kHeated, false, true, true>}},
      {{resident_kernel<kHeated, true, false, false>, resident_kernel<kHeated, true, false, true>},
       {resident_kernel<kHeated, true, true, false>, resident_kernel<kHeated, true, true, true>}}};
  const Kernel kernel = kernels[plan.image_in_shared ? 1 : 0][view.two_levels ? 0 : 1][view.sums != nullptr ? 1 : 0];
  if (!allow_shared(kernel, plan.shared_bytes)) return false;
  kernel<<<blocks_for(view.pairs, plan.pairs), plan.threads, plan.shared_bytes>>>(view, plan.pairs, first_sweep,
                                                                                  sweeps);
  return true;
}

template <bool kHeated>
void launch_colour(const LaneTileView& view, const LanePlan& plan, std::uint64_t sweep, std::uint32_t first,
                   std::uint32_t end) {
  using Kernel = void (*)(LaneTileView, std::uint64_t, std::uint32_t, std::uint32_t);
  static constexpr Kernel kernels[2][2] = {{colour_kernel<kHeated, false, false>, colour_kernel<kHeated, false, true>},
                                           {colour_kernel<kHeated, true, false>, colour_kernel<kHeated, true, true>}};
  const dim3 threads(plan.pairs, plan.threads / plan.pairs);
  const dim3 blocks(blocks_for(end - first, threads.y), blocks_for(view.pairs, threads.x));
  kernels[view.two_levels ? 0 : 1][view.sums != nullptr ? 1 : 0]<<<blocks, threads>>>(view, sweep, first, end);
}

}  // namespace poise::cuda
