/// Kernels of chains across lanes: plain sweeps, counts, and what is gathered for the host.
#include <algorithm>

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
__global__ void gather_levels_kernel(const std::uint8_t* levels, const std::uint32_t* place, std::uint32_t rows,
                                     LaneBatch batch, std::uint8_t* out) {
  __shared__ std::uint8_t tile[kTile][kTile + 4];
  const std::uint32_t row = blockIdx.x * kTile, lane = blockIdx.y * kTile;
  for (std::uint32_t k = threadIdx.y; k < kTile; k += blockDim.y) {
    if (row + k >= rows || lane + threadIdx.x >= batch.count) continue;
    tile[k][threadIdx.x] =
        levels[static_cast<std::size_t>(place[row + k]) * batch.lanes + batch.first + lane + threadIdx.x];
  }
  __syncthreads();
  for (std::uint32_t k = threadIdx.y; k < kTile; k += blockDim.y) {
    if (row + threadIdx.x >= rows || lane + k >= batch.count) continue;
    out[static_cast<std::size_t>(lane + k) * rows + row + threadIdx.x] = tile[threadIdx.x][k];
  }
}

__global__ void scatter_levels_kernel(const std::uint8_t* in, const std::uint32_t* place, std::uint32_t rows,
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
    levels[static_cast<std::size_t>(place[row + k]) * batch.lanes + batch.first + lane + threadIdx.x] =
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

bool launch_resident(const LaneBlockView& view, const LanePlan& plan, std::uint64_t first_sweep, std::uint32_t sweeps) {
  return launch_resident_of<false>(view, plan, first_sweep, sweeps);
}

void launch_colour(const LaneBlockView& view, const LanePlan& plan, std::uint64_t sweep, std::uint32_t first,
                   std::uint32_t end) {
  launch_colour_of<false>(view, plan, sweep, first, end);
}

void launch_spill_counts(std::uint16_t* counts, std::uint32_t* spilled, std::size_t size) {
  spill_counts_kernel<<<blocks_for(size, 256), 256>>>(counts, spilled, size);
}

void launch_spill_sums(float* sums, double* earlier, std::size_t size) {
  spill_sums_kernel<<<blocks_for(size, 256), 256>>>(sums, earlier, size);
}

void launch_gather_levels(const std::uint8_t* levels, const std::uint32_t* place, std::uint32_t rows, LaneBatch batch,
                          std::uint8_t* out) {
  const dim3 blocks(blocks_for(rows, kTile), blocks_for(batch.count, kTile));
  gather_levels_kernel<<<blocks, dim3(kTile, 8)>>>(levels, place, rows, batch, out);
}

void launch_scatter_levels(const std::uint8_t* in, const std::uint32_t* place, std::uint32_t rows, LaneBatch batch,
                           std::uint8_t* levels) {
  const dim3 blocks(blocks_for(rows, kTile), blocks_for(batch.count, kTile));
  scatter_levels_kernel<<<blocks, dim3(kTile, 8)>>>(in, place, rows, batch, levels);
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

}  // namespace poise::cuda
