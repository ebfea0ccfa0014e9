/// Tiles of units by chains: weights and bits go through shared memory while those before are multiplied, and what is
/// left open is summed exactly by a warp for each unit.
#include "engines/cuda/rbm/rbm_gibbs_kernels.hpp"

#include <cuda_pipeline.h>

#include "engines/cuda/common/kernel.cuh"

namespace poise::cuda {

namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kAcross = 4;  // fragments of eight units that a warp has: a slice
constexpr unsigned kOwn = 2;     // words of inputs that a warp multiplies in a turn

/// A warp has kFragments times sixteen chains of one slice. A block has kDown x kSlices warps, and as many more of them
/// as share out the inputs. kAhead turns are on their way.
template <unsigned kFragments, unsigned kDown, unsigned kSlices, unsigned kShares, unsigned kAhead>
struct GibbsShape {
  static constexpr unsigned fragments = kFragments, slices = kSlices, shares = kShares;
  static constexpr unsigned rows = kFragments * 16 * kDown;
  static constexpr unsigned units = kSlices * kGibbsSlice;
  static constexpr unsigned tiles = kDown * kSlices;  // of a warp each
  static constexpr unsigned threads = tiles * kShares * kWarp;
  static constexpr unsigned steps = kOwn * kShares;  // words of inputs in a turn
  static constexpr unsigned slots = kAhead + 1;
  static constexpr unsigned weight_slot = units / 8 * steps * kWarp;  // fragments
  static constexpr unsigned input_slot = rows * steps;                // words
  static constexpr unsigned turns_bytes = slots * (weight_slot * sizeof(GibbsFragment) + input_slot * 4);
  // After the product: words of drawn units, sums of other shares, offsets of open units.
  static constexpr unsigned drawn_words = rows * slices;
  static constexpr unsigned sums = (kShares - 1) * tiles * kFragments * kAcross * 4 * kWarp;
  static constexpr unsigned drawn_bytes = (drawn_words + sums) * 4 + rows * units * 2;
  static constexpr unsigned bytes = turns_bytes > drawn_bytes ? turns_bytes : drawn_bytes;
};

/// A layer that is drawn given the other.
struct Pass {
  GibbsLayerView layer;
  GibbsStream stream;
  double unit;
  double in_one;
  std::uint32_t chains;
  std::uint32_t ahead;
  const std::uint32_t* given;
  std::uint32_t* drawn;
  uint4* planes;  ///< or null
  GibbsRungs rungs;
};

/// Which chain a row is.
struct Row {
  std::uint64_t stream;
  std::size_t counted;  ///< row of its counts
  std::uint32_t rung;
};
template <bool kHeated>
__device__ Row row_of(const Pass& pass, std::size_t row) {
  if constexpr (kHeated) {
    // Rows that fill the last tile are at some rung too.
    const std::uint32_t rung = row < pass.chains ? pass.rungs.rung_of[row] : 0;
    const auto ladder = static_cast<std::uint32_t>(row) / pass.rungs.rungs;
    return {replica_stream(pass.stream.first_chain, ladder, pass.rungs.rungs - 1 - rung), ladder, rung};
  } else {
    return {pass.stream.first_chain + row, row, 0};
  }
}

/// The first block of Philox of the present step.
__device__ std::uint64_t first_block(const Pass& pass) {
  return (*pass.stream.steps + pass.ahead) * (pass.stream.words / 2);
}

/// Whether a unit that was left open is on: by the exact sum, which a warp adds up.
template <bool kHeated>
__device__ bool settle(const Pass& pass, std::size_t chain, unsigned unit) {
  const unsigned lane = threadIdx.x % kWarp;
  const std::uint32_t* const given = pass.given + chain * pass.layer.input_words;
  const float* const weights = pass.layer.weights + static_cast<std::size_t>(unit) * kWarp * pass.layer.input_words;
  long long sum = 0;
#pragma unroll 8
  for (unsigned word = 0; word < pass.layer.input_words; ++word) {
    if ((given[word] >> lane & 1U) != 0) sum += whole_units(__ldg(weights + word * kWarp + lane), pass.in_one);
  }
  for (unsigned far = kWarp / 2; far > 0; far /= 2) sum += __shfl_xor_sync(~0U, sum, far);
  sum += whole_units(__ldg(pass.layer.biases + unit), pass.in_one);
  const unsigned slice = pass.layer.first_slice + unit / kGibbsSlice, inside = unit % kGibbsSlice;
  const Row row = row_of<kHeated>(pass, chain);
  const std::uint64_t stream = row.stream;
  const std::uint64_t block = first_block(pass);
  const GibbsOffset start = gibbs_offset(block, slice);
  const Philox words = philox(start.block + gibbs_block(inside), stream, pass.stream.seed);
  // A block has eight sixteens; those of a unit are at an even or an odd offset by the half of the slice it is in.
  const std::uint64_t at = 8 * block + std::uint64_t{slice} * kGibbsSlice + 2 * (inside % 16) + inside / 16;
  const GibbsOpen open{at, stream + pass.stream.further, gibbs_bits(words, start.word, inside)};
  if constexpr (kHeated) {
    const double offset = pass.layer.offsets[std::size_t{row.rung} * pass.layer.units + unit];
    return is_on(open, pass.stream.seed, heated_activation(pass.rungs.units[row.rung], sum, offset));
  } else {
    return is_on(open, pass.stream.seed, pass.unit * static_cast<double>(sum));
  }
}

/// One more for every unit that is on, in counts of which a word has one bit of 32 units.
__device__ void count_on(uint4& planes, std::uint32_t on) {
  uint4 now = planes;
  std::uint32_t carry = on, next = now.x & carry;
  now.x ^= carry;
  carry = next;
  next = now.y & carry;
  now.y ^= carry;
  carry = next;
  next = now.z & carry;
  now.z ^= carry;
  now.w ^= next;
  planes = now;
}

template <class Shape, bool kHeated>
__global__ void __launch_bounds__(Shape::threads) draw_kernel(Pass pass) {
  constexpr unsigned kSteps = Shape::steps, kRows = Shape::rows, kFragments = Shape::fragments;
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ unsigned open_count;
  // [slot][eight][step][lane] and [slot][row][step]
  auto* const weights = reinterpret_cast<GibbsFragment*>(shared);
  auto* const inputs = reinterpret_cast<std::uint32_t*>(weights + Shape::slots * Shape::weight_slot);

  const GibbsLayerView& layer = pass.layer;
  const std::size_t first_row = static_cast<std::size_t>(blockIdx.y) * kRows;
  const unsigned first_slice = blockIdx.x * Shape::slices;
  const unsigned turns = (layer.input_words + kSteps - 1) / kSteps;
  const auto fetch_weights = [&](unsigned turn) {
    if (turn >= turns) return;
    for (unsigned k = threadIdx.x; k < Shape::weight_slot; k += Shape::threads) {
      const unsigned step = turn * kSteps + k / kWarp % kSteps, eight = k / kWarp / kSteps;
      if (step >= layer.input_words) continue;
      const std::size_t from = std::size_t{first_slice * kAcross + eight} * layer.input_words + step;
      __pipeline_memcpy_async(weights + turn % Shape::slots * Shape::weight_slot + k,
                              layer.fragments + from * kWarp + k % kWarp, sizeof(GibbsFragment));
    }
  };
  const auto fetch_inputs = [&](unsigned turn) {
    if (turn >= turns) return;
    for (unsigned k = threadIdx.x; k < Shape::input_slot / 2; k += Shape::threads) {
      const unsigned step = turn * kSteps + k % (kSteps / 2) * 2, row = k / (kSteps / 2);
      if (step >= layer.input_words) continue;
      __pipeline_memcpy_async(inputs + turn % Shape::slots * Shape::input_slot + 2 * k,
                              pass.given + (first_row + row) * layer.input_words + step, 8);
    }
  };

  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const unsigned tile = warp % Shape::tiles, share = warp / Shape::tiles;
  const unsigned slice = tile % Shape::slices, warp_row = tile / Shape::slices * kFragments * 16;
  const unsigned g = lane / 4, t = lane % 4;
  std::int32_t high[kFragments][kAcross][4] = {}, low[kFragments][kAcross][4] = {};

  // Weights are always the same; bits are what the launch before has made.
  if (threadIdx.x == 0) open_count = 0;
  for (unsigned turn = 0; turn + 1 < Shape::slots; ++turn) fetch_weights(turn);
  wait_for_the_one_before();
  for (unsigned turn = 0; turn + 1 < Shape::slots; ++turn) {
    fetch_inputs(turn);
    __pipeline_commit();
  }
  for (unsigned turn = 0; turn < turns; ++turn) {
    __pipeline_wait_prior(Shape::slots - 2);
    __syncthreads();  // also, no thread reads any more where the next part goes
    fetch_weights(turn + Shape::slots - 1);
    fetch_inputs(turn + Shape::slots - 1);
    __pipeline_commit();
    if (turn * kSteps + share * kOwn >= layer.input_words) continue;  // both words of a share are there, or none
    const std::uint32_t* const words = inputs + turn % Shape::slots * Shape::input_slot + share * kOwn;
    const GibbsFragment* const row =
        weights + turn % Shape::slots * Shape::weight_slot + (slice * kAcross * kSteps + share * kOwn) * kWarp + lane;
    uint2 bits[kFragments][2];
#pragma unroll
    for (unsigned i = 0; i < kFragments; ++i) {
#pragma unroll
      for (unsigned down = 0; down < 2; ++down) {
        bits[i][down] = *reinterpret_cast<const uint2*>(words + (warp_row + 16 * i + 8 * down + g) * kSteps);
      }
    }
#pragma unroll
    for (unsigned step = 0; step < kOwn; ++step) {
      std::uint32_t a[kFragments][4];
#pragma unroll
      for (unsigned i = 0; i < kFragments; ++i) {
#pragma unroll
        for (unsigned k = 0; k < 4; ++k) {
          a[i][k] = gibbs_inputs(step == 0 ? bits[i][k % 2].x : bits[i][k % 2].y, t, k / 2);
        }
      }
#pragma unroll
      for (unsigned j = 0; j < kAcross; ++j) {
        const GibbsFragment b = row[(j * kSteps + step) * kWarp];
#pragma unroll
        for (unsigned i = 0; i < kFragments; ++i) {
          multiply_bytes(high[i][j], a[i], b.high);
          multiply_bytes(low[i][j], a[i], b.low);
        }
      }
    }
  }

  __syncthreads();
  auto* const drawn = reinterpret_cast<std::uint32_t*>(shared);  // [row][slice]
  auto* const shares = reinterpret_cast<std::int32_t*>(drawn + Shape::drawn_words);
  auto* const open = reinterpret_cast<std::uint16_t*>(shares + Shape::sums);
  if constexpr (Shape::shares > 1) {
    const auto at = [&](unsigned other, unsigned i, unsigned j, unsigned k) -> std::int32_t& {
      const unsigned fragment = (((other - 1) * Shape::tiles + tile) * kFragments + i) * kAcross + j;
      return shares[(fragment * 4 + k) * kWarp + lane];
    };
#pragma unroll
    for (unsigned i = 0; i < kFragments; ++i) {
#pragma unroll
      for (unsigned j = 0; j < kAcross; ++j) {
#pragma unroll
        for (unsigned k = 0; k < 4; ++k) {
          if (share > 0) at(share, i, j, k) = 256 * high[i][j][k] + low[i][j][k];
        }
      }
    }
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < kFragments; ++i) {
#pragma unroll
      for (unsigned j = 0; j < kAcross; ++j) {
#pragma unroll
        for (unsigned k = 0; k < 4; ++k) {
          for (unsigned other = 1; share == 0 && other < Shape::shares; ++other) low[i][j][k] += at(other, i, j, k);
        }
      }
    }
  }
  if (share == 0) {
    const unsigned first_unit = (first_slice + slice) * kGibbsSlice;
    const unsigned left = layer.units > first_unit ? layer.units - first_unit : 0;
    const std::uint32_t valid = left < kGibbsSlice ? (1U << left) - 1 : ~0U;
    const GibbsOffset offset = gibbs_offset(first_block(pass), layer.first_slice + first_slice + slice);
    GibbsUnit units[8];
    const auto fetch_units = [&](std::uint32_t rung) {
      const GibbsUnit* const first = layer.bounds + std::size_t{rung} * layer.words * kGibbsSlice + first_unit;
#pragma unroll
      for (unsigned k = 0; k < 8; ++k) {
        const float4 bytes = __ldg(reinterpret_cast<const float4*>(first + k / 2 * 8 + 2 * t + k % 2));
        units[k] = {__float_as_int(bytes.x), bytes.y, bytes.z, bytes.w};
      }
    };
    if constexpr (!kHeated) fetch_units(0);
#pragma unroll
    for (unsigned i = 0; i < kFragments; ++i) {
#pragma unroll
      for (unsigned down = 0; down < 2; ++down) {
        const unsigned row = warp_row + 16 * i + 8 * down + g;
        const Row chain = row_of<kHeated>(pass, first_row + row);
        if constexpr (kHeated) fetch_units(chain.rung);
        const std::uint64_t stream = chain.stream;
        const Philox blocks[2] = {philox(offset.block + t, stream, pass.stream.seed),
                                  philox(offset.block + 4 + t, stream, pass.stream.seed)};
        std::int32_t sums[8];
#pragma unroll
        for (unsigned k = 0; k < 8; ++k) {
          sums[k] = 256 * high[i][k / 2][2 * down + k % 2] + low[i][k / 2][2 * down + k % 2];
        }
        GibbsDrawn own = draw_units(units, sums, t, blocks, offset.word);
        if (first_row + row >= pass.chains) own.open = 0;
        for (std::uint32_t rest = own.open & valid; rest != 0; rest &= rest - 1) {
          open[atomicAdd(&open_count, 1U)] =
              static_cast<std::uint16_t>(row * Shape::units + slice * kGibbsSlice + __ffs(static_cast<int>(rest)) - 1);
        }
        own.on |= __shfl_xor_sync(~0U, own.on, 1);
        own.on |= __shfl_xor_sync(~0U, own.on, 2);
        if (t == 0) drawn[row * Shape::slices + slice] = own.on & valid;
      }
    }
  }
  __syncthreads();
  for (unsigned k = warp; k < open_count; k += Shape::threads / kWarp) {
    const unsigned row = open[k] / Shape::units, unit = open[k] % Shape::units;
    const bool on = settle<kHeated>(pass, first_row + row, first_slice * kGibbsSlice + unit);
    if (on && lane == 0) atomicOr(drawn + row * Shape::slices + unit / kGibbsSlice, 1U << unit % kGibbsSlice);
  }
  __syncthreads();
  for (unsigned k = threadIdx.x; k < Shape::drawn_words; k += Shape::threads) {
    const std::size_t chain = first_row + k / Shape::slices;
    if (chain >= pass.chains) break;
    const std::size_t to = chain * layer.words + first_slice + k % Shape::slices;
    pass.drawn[to] = drawn[k];
    if (pass.planes == nullptr) continue;
    const Row row = row_of<kHeated>(pass, chain);
    if (row.rung + 1 == pass.rungs.rungs) {
      count_on(pass.planes[row.counted * layer.words + first_slice + k % Shape::slices], drawn[k]);
    }
  }
}

template <class Shape, bool kHeated>
void launch(const Pass& pass, cudaStream_t stream) {
  static_assert(Shape::rows * Shape::units <= 65536, "offsets of open units have sixteen bits");
  static_assert(kGibbsRows % Shape::rows == 0);
  static const cudaError_t allowed = cudaFuncSetAttribute(
      draw_kernel<Shape, kHeated>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(Shape::bytes));
  static_cast<void>(allowed);  // a launch that is not allowed fails by itself
  const dim3 blocks(pass.layer.words / Shape::slices, (pass.chains + Shape::rows - 1) / Shape::rows);
  launch_after(draw_kernel<Shape, kHeated>, {blocks, Shape::threads, Shape::bytes, stream}, pass);
}

template <bool kHeated>
void draw_of(const Pass& pass, cudaStream_t stream) {
  // The smaller the tiles, the more of the device has something to do, and the more is read twice.
  if (pass.chains <= 64) {
    launch<GibbsShape<1, 1, 1, 4, 2>, kHeated>(pass, stream);
  } else if (pass.chains <= 2048) {
    launch<GibbsShape<2, 2, 2, 1, 3>, kHeated>(pass, stream);
  } else {
    launch<GibbsShape<4, 2, 2, 1, 3>, kHeated>(pass, stream);
  }
}

void draw(const Pass& pass, cudaStream_t stream) {
  if (pass.rungs.rung_of != nullptr) {
    draw_of<true>(pass, stream);
  } else {
    draw_of<false>(pass, stream);
  }
}

}  // namespace

void launch_gibbs_sweep(const GibbsView& view, std::uint32_t ahead, cudaStream_t stream) {
  const GibbsChainsView& all = view.chains;
  Pass pass{view.hidden, view.stream, view.unit,  view.in_one, all.chains,
            ahead,       all.visible, all.hidden, nullptr,     view.rungs};
  draw(pass, stream);
  pass.layer = view.visible;
  pass.given = all.hidden;
  pass.drawn = all.visible;
  pass.planes = all.planes;
  draw(pass, stream);
}

}  // namespace poise::cuda
