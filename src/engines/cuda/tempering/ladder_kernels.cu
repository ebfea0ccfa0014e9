/// Kernels of ladders whose replicas are lanes: heated sweeps, energies, swaps, exchange of components, and what the
/// cold replicas are worth.
#include "engines/cuda/tempering/ladder_kernels.hpp"

#include <algorithm>

#include "engines/cuda/lanes/lane_sweep.cuh"
#include "engines/cuda/tempering/ladder_swap.cuh"

namespace poise::cuda {

namespace {

constexpr unsigned kAcross = 32;     // lanes
constexpr unsigned kDown = 16;       // factors at a time
constexpr unsigned kMostTeam = 512;  // threads that have two ladders

/// What a factor adds to the log weight of a lane, in units; zeros are counted, and count as the lowest entry.
__device__ inline std::int64_t soft_units(const FactorsView& view, std::uint32_t number, std::uint32_t lane,
                                          std::uint32_t& zeros) {
  const ExactFactor factor = view.exact.factors[number];
  std::size_t entry = factor.first_entry;
  for (std::uint32_t s = factor.first_site; s < factor.end_site; ++s) {
    const ExactSite site = view.exact.sites[s];
    entry += static_cast<std::size_t>(site.stride) *
             view.levels[static_cast<std::size_t>(site.position) * view.lanes + lane];
  }
  const std::int64_t units = view.exact.values[entry];
  if (units != ExactTables::kZero) return units;
  ++zeros;
  return view.exact.lowest[number];
}

/// All threads look up, those of the first row add.
__global__ void energies_kernel(FactorsView view, ReplicaEnergy* out) {
  __shared__ double units[2][kDown][kAcross];
  __shared__ std::uint32_t all_zeros[kDown][kAcross];
  const std::uint32_t lane = blockIdx.x * kAcross + threadIdx.x;
  double sum = 0.0;
  std::uint32_t zeros = 0;
  unsigned which = 0;
  for (std::uint32_t first = 0; first < view.factors; first += kDown, which ^= 1U) {
    const std::uint32_t number = first + threadIdx.y;
    units[which][threadIdx.y][threadIdx.x] =
        number < view.factors && lane < view.lanes ? static_cast<double>(soft_units(view, number, lane, zeros)) : 0.0;
    __syncthreads();
    if (threadIdx.y != 0) continue;
#pragma unroll
    for (unsigned k = 0; k < kDown; ++k) sum += units[which][k][threadIdx.x];
  }
  all_zeros[threadIdx.y][threadIdx.x] = zeros;
  __syncthreads();
  if (threadIdx.y != 0 || lane >= view.lanes) return;
  for (unsigned k = 1; k < kDown; ++k) zeros += all_zeros[k][threadIdx.x];
  out[lane] = {view.exact.unit * sum, static_cast<double>(zeros)};
}

__global__ void exact_energies_kernel(FactorsView view, ReplicaEnergy* out) {
  __shared__ std::int64_t part[kDown][kAcross];
  const std::uint32_t lane = blockIdx.x * kAcross + threadIdx.x;
  std::int64_t sum = 0;
  std::uint32_t zeros = 0;
  if (lane < view.lanes) {
    for (std::uint32_t number = threadIdx.y; number < view.factors; number += kDown) {
      sum += soft_units(view, number, lane, zeros);
    }
  }
  part[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || lane >= view.lanes) return;
  for (unsigned k = 1; k < kDown; ++k) sum += part[k][threadIdx.x];
  out[lane] = {view.exact.unit * static_cast<double>(sum), 0.0};
}

/// A block that has two ladders.
class BlockTeam {
 public:
  __device__ explicit BlockTeam(std::uint32_t* counts) : counts_(counts) {}
  __device__ std::uint32_t rank() const { return threadIdx.x; }
  __device__ std::uint32_t size() const { return blockDim.x; }
  __device__ void wait() const { __syncthreads(); }
  __device__ bool any(bool mine) const { return __syncthreads_or(mine ? 1 : 0) != 0; }
  /// How many of the threads before this one, and `all` of them.
  __device__ std::uint32_t before(bool mine, std::uint32_t& all) const {
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const std::uint32_t bits = __ballot_sync(0xffffffffU, mine);
    if (lane == 0) counts_[warp] = __popc(bits);
    __syncthreads();
    std::uint32_t number = __popc(bits & ((1U << lane) - 1));
    all = 0;
    for (unsigned w = 0; w < blockDim.x / 32; ++w) {
      if (w < warp) number += counts_[w];
      all += counts_[w];
    }
    __syncthreads();
    return number;
  }

 private:
  std::uint32_t* counts_;  // of each warp
};

__global__ void __launch_bounds__(kMostTeam)
    exchange_kernel(const __grid_constant__ ComponentsView view, const __grid_constant__ LadderView ladders,
                    std::uint32_t rung) {
  __shared__ std::uint32_t counts[kMostTeam / 32];
  exchange_components(view, ladders, blockIdx.x, rung, BlockTeam(counts));
}

__device__ inline std::size_t cold_lane(const ColdView& view, std::uint32_t ladder) {
  const std::size_t first = static_cast<std::size_t>(ladder) * view.rungs;
  return first + view.replica_at[first + view.rungs - 1];
}

__global__ void count_cold_kernel(ColdView view, const ImageVariable* variables, std::uint32_t positions,
                                  std::uint8_t* counts, std::uint32_t stride) {
  const std::uint32_t ladder = blockIdx.x * blockDim.x + threadIdx.x;
  if (ladder >= view.ladders) return;
  const std::size_t lane = cold_lane(view, ladder);
  for (std::uint32_t k = blockIdx.y * blockDim.y + threadIdx.y; k < positions; k += gridDim.y * blockDim.y) {
    const std::uint32_t level = view.levels[static_cast<std::size_t>(k) * view.lanes + lane];
    if (level > 0) ++counts[static_cast<std::size_t>(variables[k].entry + level - 1) * stride + ladder];
  }
}

__global__ void keep_cold_kernel(ColdView view, std::uint32_t positions, std::uint8_t* out) {
  const std::uint32_t ladder = blockIdx.x * blockDim.x + threadIdx.x;
  if (ladder >= view.ladders) return;
  const std::size_t lane = cold_lane(view, ladder);
  for (std::uint32_t k = blockIdx.y * blockDim.y + threadIdx.y; k < positions; k += gridDim.y * blockDim.y) {
    out[static_cast<std::size_t>(k) * view.ladders + ladder] =
        view.levels[static_cast<std::size_t>(k) * view.lanes + lane];
  }
}

__global__ void gather_cold_kernel(ColdView view, const std::uint32_t* row_of, std::uint32_t rows, std::uint8_t* out) {
  const std::size_t number = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (number >= static_cast<std::size_t>(view.ladders) * rows) return;
  const auto ladder = static_cast<std::uint32_t>(number / rows), row = static_cast<std::uint32_t>(number % rows);
  out[number] = view.levels[static_cast<std::size_t>(row_of[row]) * view.lanes + cold_lane(view, ladder)];
}

}  // namespace

template bool launch_resident<true>(const LaneTileView&, const LanePlan&, std::uint64_t, std::uint32_t);
template void launch_colour<true>(const LaneTileView&, const LanePlan&, std::uint64_t, std::uint32_t, std::uint32_t);

void launch_energies(const FactorsView& view, ReplicaEnergy* out) {
  energies_kernel<<<blocks_for(view.lanes, kAcross), dim3(kAcross, kDown)>>>(view, out);
}

void launch_exact_energies(const FactorsView& view, ReplicaEnergy* out) {
  exact_energies_kernel<<<blocks_for(view.lanes, kAcross), dim3(kAcross, kDown)>>>(view, out);
}

void launch_swaps(const LadderView& view, const EnergyGains& gains, std::uint64_t step) {
  launch_swaps_of(view, gains, step, nullptr);
}

void launch_exchange(const ComponentsView& view, const LadderView& ladders, std::uint32_t rung) {
  const unsigned threads = std::min(kMostTeam, (view.positions + 31) / 32 * 32);
  exchange_kernel<<<ladders.ladders / 2, threads>>>(view, ladders, rung);
}

void launch_count_cold(const ColdView& view, const PackedImage& image, std::uint32_t positions, std::uint8_t* counts,
                       std::uint32_t stride) {
  const dim3 threads(32, 8);
  const dim3 blocks(blocks_for(view.ladders, threads.x), std::min(1024U, blocks_for(positions, threads.y)));
  count_cold_kernel<<<blocks, threads>>>(view, reinterpret_cast<const ImageVariable*>(image.bytes), positions, counts,
                                         stride);
}

void launch_keep_cold(const ColdView& view, std::uint32_t positions, std::uint8_t* out) {
  const dim3 threads(32, 8);
  const dim3 blocks(blocks_for(view.ladders, threads.x), std::min(1024U, blocks_for(positions, threads.y)));
  keep_cold_kernel<<<blocks, threads>>>(view, positions, out);
}

void launch_gather_cold(const ColdView& view, const std::uint32_t* row_of, std::uint32_t rows, std::uint8_t* out) {
  gather_cold_kernel<<<blocks_for(static_cast<std::size_t>(view.ladders) * rows, 256), 256>>>(view, row_of, rows, out);
}

}  // namespace poise::cuda
