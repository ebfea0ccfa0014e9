/// Kernels that sum states of draws whose chains are lanes: a block has 32 lanes of a draw.
#include "engines/cuda/lanes/lane_sums.hpp"

namespace poise::cuda {

namespace {

constexpr unsigned kAcross = 32;  // lanes
constexpr unsigned kDown = 16;    // factors at a time
constexpr unsigned kTallied = 32; // positions at a time

__device__ inline std::int64_t factor_units(const SumsOfDraws& view, const std::uint8_t* levels, std::uint32_t number,
                                            std::uint32_t lane) {
  const ExactFactor factor = view.exact.factors[number];
  std::size_t entry = factor.first_entry;
  for (std::uint32_t s = factor.first_site; s < factor.end_site; ++s) {
    const ExactSite site = view.exact.sites[s];
    entry += static_cast<std::size_t>(site.stride) * levels[static_cast<std::size_t>(site.position) * view.lanes + lane];
  }
  return view.exact.values[entry];
}

__device__ inline double log_units(std::int64_t units) {
  return units == ExactTables::kZero ? -__longlong_as_double(0x7ff0000000000000LL) : static_cast<double>(units);
}

/// All threads look up, those of the first row add.
__global__ void __launch_bounds__(kAcross* kDown) in_order_kernel(const __grid_constant__ SumsOfDraws view) {
  __shared__ double units[2][kDown][kAcross];
  const std::uint32_t lane = blockIdx.x * kAcross + threadIdx.x;
  const std::uint8_t* const levels = view.states + blockIdx.y * view.bytes;
  double sum = 0.0;
  unsigned which = 0;
  for (std::uint32_t first = 0; first < view.factors; first += kDown, which ^= 1U) {
    const std::uint32_t number = first + threadIdx.y;
    units[which][threadIdx.y][threadIdx.x] =
        number < view.factors && lane < view.lanes ? log_units(factor_units(view, levels, number, lane)) : 0.0;
    __syncthreads();
    if (threadIdx.y != 0) continue;
#pragma unroll
    for (unsigned k = 0; k < kDown; ++k) sum += units[which][k][threadIdx.x];
  }
  if (threadIdx.y == 0 && lane < view.lanes) view.out.units(blockIdx.y)[lane] = sum;
}

__global__ void __launch_bounds__(kAcross* kDown) in_integers_kernel(const __grid_constant__ SumsOfDraws view) {
  __shared__ std::int64_t part[kDown][kAcross];
  const std::uint32_t lane = blockIdx.x * kAcross + threadIdx.x;
  const std::uint8_t* const levels = view.states + blockIdx.y * view.bytes;
  std::int64_t sum = 0;
  if (lane < view.lanes) {
    for (std::uint32_t number = threadIdx.y; number < view.factors; number += kDown) {
      sum += factor_units(view, levels, number, lane);
    }
  }
  part[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || lane >= view.lanes) return;
  for (unsigned k = 1; k < kDown; ++k) sum += part[k][threadIdx.x];
  view.out.units(blockIdx.y)[lane] = static_cast<double>(sum);
}

/// Without the most frequent level those at level 1 are told.
template <bool kMost>
__global__ void __launch_bounds__(kAcross* kTallied) tally_kernel(const __grid_constant__ SumsOfDraws view) {
  extern __shared__ std::uint32_t at_level[];  // [level][lane], and the differences
  const std::uint32_t lane = blockIdx.x * kAcross + threadIdx.x;
  const std::uint8_t* const levels = view.states + blockIdx.y * view.bytes;
  std::uint32_t* const unlike = at_level + view.most_levels * kAcross;
  for (std::uint32_t k = threadIdx.y; k <= view.most_levels; k += blockDim.y) at_level[k * kAcross + threadIdx.x] = 0;
  __syncthreads();
  if (lane < view.lanes) {
    std::uint32_t different = 0;
    for (std::uint32_t k = threadIdx.y; k < view.positions; k += blockDim.y) {
      const std::uint32_t level = levels[static_cast<std::size_t>(k) * view.lanes + lane];
      if (level < view.most_levels) atomicAdd(at_level + level * kAcross + threadIdx.x, 1U);
      if (view.reference != nullptr && level != view.reference[k]) ++different;
    }
    if (different > 0) atomicAdd(unlike + threadIdx.x, different);
  }
  __syncthreads();
  if (threadIdx.y != 0 || lane >= view.lanes) return;
  std::uint32_t told = view.most_levels > 1 ? at_level[kAcross + threadIdx.x] : 0;
  if constexpr (kMost) {
    for (std::uint32_t level = 0; level < view.most_levels; ++level) {
      told = max(told, at_level[level * kAcross + threadIdx.x]);
    }
  }
  view.out.different(blockIdx.y)[lane] = unlike[threadIdx.x];
  view.out.at_level(blockIdx.y)[lane] = told;
}

dim3 blocks_of(const SumsOfDraws& view) { return {(view.lanes + kAcross - 1) / kAcross, view.draws}; }

template <bool kMost>
void launch_tally(const SumsOfDraws& view) {
  const std::size_t bytes = (view.most_levels + std::size_t{1}) * kAcross * sizeof(std::uint32_t);
  tally_kernel<kMost><<<blocks_of(view), dim3(kAcross, kTallied), bytes>>>(view);
}

}  // namespace

void launch_sums_in_order(const SumsOfDraws& view) {
  in_order_kernel<<<blocks_of(view), dim3(kAcross, kDown)>>>(view);
  launch_tally<true>(view);
}

void launch_sums_in_integers(const SumsOfDraws& view) {
  in_integers_kernel<<<blocks_of(view), dim3(kAcross, kDown)>>>(view);
  launch_tally<false>(view);
}

}  // namespace poise::cuda
