/// Kernels of chains across lanes: plain sweeps, counts, and what is gathered for the host.

#include "engines/cuda/lanes/lane_kernels.hpp"
#include "engines/cuda/lanes/lane_sweep.cuh"

namespace poise::cuda {

namespace {

__global__ void spill_counts_kernel(std::uint16_t* counts, std::uint32_t* spilled, std::size_t size) {
  const std::size_t k = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (k >= size) return;
  const std::uint32_t both = counts[k];
  spilled[2 * k] += both & 0xffU;
  spilled[2 * k + 1] += both >> 8;
  counts[k] = 0;
}

__global__ void spill_sums_kernel(float* sums, double* earlier, std::size_t size) {
  const std::size_t k = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (k >= size) return;
  earlier[k] += static_cast<double>(sums[k]);
  sums[k] = 0.0F;
}

constexpr unsigned kTile = 32;

/// Through a tile, so that both sides are read and written in lines.
__global__ void gather_levels_kernel(const std::uint8_t* levels, const std::uint32_t* row_of, std::uint32_t rows,
                                     LaneBatch batch, std::uint8_t* out) {
  __shared__ std::uint8_t tile[kTile][kTile + 4];
  const std::uint32_t row = blockIdx.x * kTile, lane = blockIdx.y * kTile;
  for (std::uint32_t k = threadIdx.y; k < kTile; k += blockDim.y) {
    if (row + k >= rows || lane + threadIdx.x >= batch.count) continue;
    tile[k][threadIdx.x] =
        levels[static_cast<std::size_t>(row_of[row + k]) * batch.lanes + batch.first + lane + threadIdx.x];
  }
  __syncthreads();
  for (std::uint32_t k = threadIdx.y; k < kTile; k += blockDim.y) {
    if (row + threadIdx.x >= rows || lane + k >= batch.count) continue;
    out[static_cast<std::size_t>(lane + k) * rows + row + threadIdx.x] = tile[threadIdx.x][k];
  }
}

__global__ void scatter_levels_kernel(const std::uint8_t* in, const std::uint32_t* row_of, std::uint32_t rows,
                                      LaneBatch batch, std::uint8_t* levels) {
  __shared__ std::uint8_t tile[kTile][kTile + 4];
  const std::uint32_t row = blockIdx.x * kTile, lane = blockIdx.y * kTile;
  for (std::uint32_t k = threadIdx.y; k < kTile; k += blockDim.y) {
    if (row + threadIdx.x >= rows || lane + k >= batch.count) continue;
    tile[threadIdx.x][k] = in[static_cast<std::size_t>(lane + k) * rows + row + threadIdx.x];
  }
  __syncthreads();
  for (std::uint32_t k = threadIdx.y; k < kTile; k += blockDim.y) {
    if (row + k >= rows || lane + threadIdx.x >= batch.count) continue;
    levels[static_cast<std::size_t>(row_of[row + k]) * batch.lanes + batch.first + lane + threadIdx.x] =
        tile[k][threadIdx.x];
  }
}

__global__ void gather_counts_kernel(const std::uint8_t* recent, const std::uint32_t* spilled, std::uint32_t rows,
                                     LaneBatch batch, std::uint64_t* out) {
  const std::uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const std::size_t from = static_cast<std::size_t>(row) * batch.lanes + batch.first + blockIdx.y;
  out[static_cast<std::size_t>(blockIdx.y) * rows + row] =
      recent[from] + (spilled != nullptr ? static_cast<std::uint64_t>(spilled[from]) : 0U);
}

__global__ void gather_sums_kernel(LaneSums from, std::uint32_t rows, LaneBatch batch, LaneSums out) {
  const std::uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const std::size_t at = static_cast<std::size_t>(row) * batch.lanes + batch.first + blockIdx.y;
  const std::size_t to = static_cast<std::size_t>(blockIdx.y) * rows + row;
  out.earlier[to] = from.earlier[at];
  out.recent[to] = from.recent[at];
}

__global__ void scatter_sums_kernel(LaneSums in, std::uint32_t rows, LaneBatch batch, LaneSums to) {
  const std::uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const std::size_t at = static_cast<std::size_t>(row) * batch.lanes + batch.first + blockIdx.y;
  const std::size_t from = static_cast<std::size_t>(blockIdx.y) * rows + row;
  to.earlier[at] = in.earlier[from];
  to.recent[at] = in.recent[from];
}

}  // namespace

template bool launch_resident<false>(const LaneTileView&, const LanePlan&, std::uint64_t, std::uint32_t);
template void launch_colour<false>(const LaneTileView&, const LanePlan&, std::uint64_t, std::uint32_t, std::uint32_t);

void launch_spill_counts(std::uint16_t* counts, std::uint32_t* spilled, std::size_t size) {
  spill_counts_kernel<<<blocks_for(size, 256), 256>>>(counts, spilled, size);
}

void launch_spill_sums(float* sums, double* earlier, std::size_t size) {
  spill_sums_kernel<<<blocks_for(size, 256), 256>>>(sums, earlier, size);
}

void launch_gather_levels(const std::uint8_t* levels, const std::uint32_t* row_of, std::uint32_t rows, LaneBatch batch,
                          std::uint8_t* out) {
  const dim3 blocks(blocks_for(rows, kTile), blocks_for(batch.count, kTile));
  gather_levels_kernel<<<blocks, dim3(kTile, 8)>>>(levels, row_of, rows, batch, out);
}

void launch_scatter_levels(const std::uint8_t* in, const std::uint32_t* row_of, std::uint32_t rows, LaneBatch batch,
                           std::uint8_t* levels) {
  const dim3 blocks(blocks_for(rows, kTile), blocks_for(batch.count, kTile));
  scatter_levels_kernel<<<blocks, dim3(kTile, 8)>>>(in, row_of, rows, batch, levels);
}

void launch_gather_counts(const std::uint8_t* recent, const std::uint32_t* spilled, std::uint32_t rows, LaneBatch batch,
                          std::uint64_t* out) {
  const dim3 blocks(blocks_for(rows, 128), batch.count);
  gather_counts_kernel<<<blocks, 128>>>(recent, spilled, rows, batch, out);
}

void launch_gather_sums(const LaneSums& from, std::uint32_t rows, LaneBatch batch, const LaneSums& out) {
  const dim3 blocks(blocks_for(rows, 128), batch.count);
  gather_sums_kernel<<<blocks, 128>>>(from, rows, batch, out);
}

void launch_scatter_sums(const LaneSums& in, std::uint32_t rows, LaneBatch batch, const LaneSums& to) {
  const dim3 blocks(blocks_for(rows, 128), batch.count);
  scatter_sums_kernel<<<blocks, 128>>>(in, rows, batch, to);
}

// Sums over states of draws: a thread block has 32 lanes of a draw.

namespace {

constexpr unsigned kAcross = 32;   // lanes
constexpr unsigned kDown = 16;     // factors at a time
constexpr unsigned kTallied = 32;  // positions at a time

__device__ inline std::int64_t factor_units(const SumsOfDraws& view, const std::uint8_t* levels, std::uint32_t number,
                                            std::uint32_t lane) {
  const ExactFactor factor = view.exact.factors[number];
  std::size_t entry = factor.first_entry;
  for (std::uint32_t s = factor.first_site; s < factor.end_site; ++s) {
    const ExactSite site = view.exact.sites[s];
    entry +=
        static_cast<std::size_t>(site.stride) * levels[static_cast<std::size_t>(site.position) * view.lanes + lane];
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
