/// Kernels of chains across lanes: a thread has two chains, and the threads of a warp have neighbouring chains of one
/// variable, or of a few where chains are few.
#include "lane_kernels.hpp"

#include <algorithm>

namespace poise::cuda {

namespace {

constexpr unsigned kMostThreads = 1024;

__device__ inline ImageView view_of(const PackedImage& image, const unsigned char* bytes) {
  return {reinterpret_cast<const ImageVariable*>(bytes), reinterpret_cast<const ImagePair*>(bytes + image.pairs),
          reinterpret_cast<const ImageTerm*>(bytes + image.terms),
          reinterpret_cast<const ImageOthers*>(bytes + image.others),
          reinterpret_cast<const float*>(bytes + image.tables)};
}

/// Bits of a pair's lanes that are chains.
__device__ inline unsigned chains_of(const LaneBlockView& view, std::uint32_t pair) {
  const auto is_chain = [&](std::uint32_t lane) { return lane >= view.first_lane && lane < view.end_lane; };
  return (is_chain(2 * pair) ? 1U : 0U) | (is_chain(2 * pair + 1) ? 2U : 0U);
}

/// Rows of words between global and shared memory, by all threads of a block.
template <bool kLoad>
__device__ inline void move_rows(std::uint16_t* global, std::uint16_t* shared, std::uint32_t rows, std::uint32_t pairs,
                                 const LaneBlockView& view) {
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

/// Of one pair of chains: all that does not depend on where its levels are.
template <class Offset>
__device__ inline TwoChains<Offset> chains_at(const LaneBlockView& view, std::uint32_t pair, std::uint64_t sweep) {
  TwoChains<Offset> two{};
  two.sums = view.sums != nullptr ? view.sums + 2 * static_cast<std::size_t>(pair) : nullptr;
  two.sums_stride = 2 * static_cast<std::size_t>(view.pairs);
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
struct PairPlace {
  std::uint16_t* levels;
  std::uint16_t* counts;
  Offset stride;
  std::uint32_t pair;
};

/// Settles what a thread has updated, wherever floats were not sure. Takes little, so that those who call it rarely
/// keep their registers.
template <bool kMany, class Offset>
__device__ __noinline__ void settle(const LaneBlockView& view, PairPlace<Offset> place, std::uint64_t sweep,
                                    Positions positions) {
  TwoChains<Offset> two = chains_at<Offset>(view, place.pair, sweep);
  two.levels = place.levels;
  two.counts = place.counts;
  two.stride = place.stride;
  for (std::uint32_t k = positions.first; k < positions.end; k += positions.step) {
    settle_both<kMany>(view_of(view.image, view.image.bytes), view.exact, k, two);
  }
}

template <bool kImageInShared, bool kMany, bool kAverage>
__global__ void __launch_bounds__(kMostThreads, 1)
    resident_kernel(const __grid_constant__ LaneBlockView view, std::uint32_t pairs, std::uint64_t first_sweep,
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
  TwoChains<std::uint32_t> two{};
  if (!idle) two = chains_at<std::uint32_t>(view, pair, first_sweep);
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
          settle<kMany>(view, PairPlace<std::uint32_t>{two.levels, two.counts, two.stride, pair}, first_sweep + sweep,
                        Positions{first + slot, end, slots});
        }
      }
      first = end;
      __syncthreads();
    }
    two.scattered += view.words * kWordStep64;
  }
  move_rows<false>(view.levels, levels, view.positions, pairs, view);
  if (view.counts != nullptr) move_rows<false>(view.counts, counts, view.entries, pairs, view);
}

template <bool kMany, bool kAverage>
__global__ void __launch_bounds__(256) colour_kernel(const __grid_constant__ LaneBlockView view, std::uint64_t sweep,
                                                     std::uint32_t first, std::uint32_t end) {
  const std::uint32_t pair = blockIdx.y * blockDim.x + threadIdx.x;
  const std::uint32_t k = first + blockIdx.x * blockDim.y + threadIdx.y;
  if (pair >= view.pairs || k >= end) return;
  TwoChains<std::size_t> two = chains_at<std::size_t>(view, pair, sweep);
  two.levels = view.levels + pair;
  two.counts = view.counts != nullptr ? view.counts + pair : nullptr;
  two.stride = view.pairs * sizeof(std::uint16_t);
  if (update_both<kMany, kAverage>(view_of(view.image, view.image.bytes), k, two)) {
    settle<kMany>(view, PairPlace<std::size_t>{two.levels, two.counts, two.stride, pair}, sweep,
                  Positions{k, k + 1, 1});
  }
}

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

constexpr unsigned kAcross = 32;  // lanes
constexpr unsigned kDown = 16;    // factors at a time

__device__ inline std::int64_t factor_units(const FactorsView& view, std::uint32_t number, std::uint32_t lane) {
  const ExactFactor factor = view.exact.factors[number];
  std::size_t entry = factor.first_entry;
  for (std::uint32_t s = factor.first_site; s < factor.end_site; ++s) {
    const ExactSite site = view.exact.sites[s];
    entry += static_cast<std::size_t>(site.stride) *
             view.levels[static_cast<std::size_t>(site.position) * view.lanes + lane];
  }
  return view.exact.values[entry];
}

/// All threads look up, those of the first row add.
__global__ void log_sums_kernel(FactorsView view, double* out) {
  __shared__ double units[2][kDown][kAcross];
  const std::uint32_t lane = blockIdx.x * kAcross + threadIdx.x;
  double sum = 0.0;
  unsigned which = 0;
  for (std::uint32_t first = 0; first < view.factors; first += kDown, which ^= 1U) {
    const std::uint32_t number = first + threadIdx.y;
    units[which][threadIdx.y][threadIdx.x] =
        number < view.factors && lane < view.lanes ? static_cast<double>(factor_units(view, number, lane)) : 0.0;
    __syncthreads();
    if (threadIdx.y != 0) continue;
#pragma unroll
    for (unsigned k = 0; k < kDown; ++k) sum += units[which][k][threadIdx.x];
  }
  if (threadIdx.y == 0 && lane < view.lanes) out[lane] = sum;
}

__global__ void exact_sums_kernel(FactorsView view, std::int64_t* out) {
  __shared__ std::int64_t part[kDown][kAcross];
  const std::uint32_t lane = blockIdx.x * kAcross + threadIdx.x;
  std::int64_t sum = 0;
  if (lane < view.lanes) {
    for (std::uint32_t number = threadIdx.y; number < view.factors; number += kDown) {
      sum += factor_units(view, number, lane);
    }
  }
  part[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || lane >= view.lanes) return;
  for (unsigned k = 1; k < kDown; ++k) sum += part[k][threadIdx.x];
  out[lane] = sum;
}

__global__ void tally_kernel(TallyView view, std::uint32_t* out) {
  extern __shared__ std::uint32_t at_level[];  // [level][lane], and the differences
  const std::uint32_t lane = blockIdx.x * kAcross + threadIdx.x;
  std::uint32_t* const unlike = at_level + view.most_levels * kAcross;
  for (std::uint32_t k = threadIdx.y; k <= view.most_levels; k += blockDim.y) at_level[k * kAcross + threadIdx.x] = 0;
  __syncthreads();
  if (lane < view.lanes) {
    for (std::uint32_t k = threadIdx.y; k < view.positions; k += blockDim.y) {
      const std::uint32_t level = view.levels[static_cast<std::size_t>(k) * view.lanes + lane];
      if (level < view.most_levels) atomicAdd(at_level + level * kAcross + threadIdx.x, 1U);
      if (view.reference != nullptr && level != view.reference[k]) atomicAdd(unlike + threadIdx.x, 1U);
    }
  }
  __syncthreads();
  if (threadIdx.y != 0 || lane >= view.lanes) return;
  std::uint32_t largest = 0;
  for (std::uint32_t level = 0; level < view.most_levels; ++level) {
    largest = max(largest, at_level[level * kAcross + threadIdx.x]);
  }
  out[lane] = unlike[threadIdx.x];
  out[view.lanes + lane] = view.most_levels > 1 ? at_level[kAcross + threadIdx.x] : 0;
  out[2 * static_cast<std::size_t>(view.lanes) + lane] = largest;
}

unsigned blocks_for(std::size_t items, unsigned threads) {
  return static_cast<unsigned>((items + threads - 1) / threads);
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

}  // namespace

bool launch_resident(const LaneBlockView& view, const LanePlan& plan, std::uint64_t first_sweep, std::uint32_t sweeps) {
  using Kernel = void (*)(LaneBlockView, std::uint32_t, std::uint64_t, std::uint32_t);
  static constexpr Kernel kernels[2][2][2] = {
      {{resident_kernel<false, false, false>, resident_kernel<false, false, true>},
       {resident_kernel<false, true, false>, resident_kernel<false, true, true>}},
      {{resident_kernel<true, false, false>, resident_kernel<true, false, true>},
       {resident_kernel<true, true, false>, resident_kernel<true, true, true>}}};
  const Kernel kernel = kernels[plan.image_in_shared ? 1 : 0][view.two_levels ? 0 : 1][view.sums != nullptr ? 1 : 0];
  if (!allow_shared(kernel, plan.shared_bytes)) return false;
  kernel<<<blocks_for(view.pairs, plan.pairs), plan.threads, plan.shared_bytes>>>(view, plan.pairs, first_sweep,
                                                                                  sweeps);
  return true;
}

void launch_colour(const LaneBlockView& view, const LanePlan& plan, std::uint64_t sweep, std::uint32_t first,
                   std::uint32_t end) {
  using Kernel = void (*)(LaneBlockView, std::uint64_t, std::uint32_t, std::uint32_t);
  static constexpr Kernel kernels[2][2] = {{colour_kernel<false, false>, colour_kernel<false, true>},
                                           {colour_kernel<true, false>, colour_kernel<true, true>}};
  const dim3 threads(plan.pairs, plan.threads / plan.pairs);
  const dim3 blocks(blocks_for(end - first, threads.y), blocks_for(view.pairs, threads.x));
  kernels[view.two_levels ? 0 : 1][view.sums != nullptr ? 1 : 0]<<<blocks, threads>>>(view, sweep, first, end);
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

void launch_log_sums(const FactorsView& view, double* out) {
  log_sums_kernel<<<blocks_for(view.lanes, kAcross), dim3(kAcross, kDown)>>>(view, out);
}

void launch_exact_sums(const FactorsView& view, std::int64_t* out) {
  exact_sums_kernel<<<blocks_for(view.lanes, kAcross), dim3(kAcross, kDown)>>>(view, out);
}

void launch_tally(const TallyView& view, std::uint32_t* out) {
  const std::size_t bytes = (view.most_levels + std::size_t{1}) * kAcross * sizeof(std::uint32_t);
  tally_kernel<<<blocks_for(view.lanes, kAcross), dim3(kAcross, 32), bytes>>>(view, out);
}

}  // namespace poise::cuda
