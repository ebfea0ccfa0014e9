/// Kernels of chains as bits: a thread has 32 chains of one variable. Threads of a warp have neighbouring words, or,
/// where there are few of them, neighbouring variables.
#include "engines/cuda/bits/bit_kernels.hpp"

#include <algorithm>
#include <type_traits>

#include "engines/cuda/bits/bit_sums.cuh"
#include "engines/cuda/common/kernel.cuh"

namespace poise::cuda {

namespace {

/// Which chains have a variable up: their own random integers of 64 digits are below P(up | blanket). `digits` are
/// those of the variable's table.
template <unsigned size>
__device__ inline std::uint32_t draw(const Digits<size>* digits, std::size_t tables, const WordKeys& keys,
                                     std::uint64_t scattered, std::uint32_t chains, const Functions& functions,
                                     unsigned column, Digits<size> four, const std::uint32_t (&x)[size]) {
  std::uint32_t up = 0;
  std::uint32_t undecided = chains;
  std::uint32_t ones = ~0U;
  for (unsigned group = 0;;) {
    const std::uint64_t low = mixed(keys.first[0] + scattered, keys.second[0]);
    const std::uint64_t high = mixed(keys.first[1] + scattered, keys.second[1]);
    scattered += kStep;
#pragma unroll
    for (unsigned a = 0; a < kRandomDigits; ++a) {
      const unsigned half = a / 2 * 32;
      const std::uint32_t random = __byte_perm(static_cast<std::uint32_t>(low >> half),
                                               static_cast<std::uint32_t>(high >> half), a % 2 == 0 ? 0x5410 : 0x7632);
      const std::uint32_t value = digit_of<size>(four.digit[a], functions, column, x);
      const std::uint32_t differs = random ^ value;
      up |= undecided & differs & value;
      undecided &= ~differs;
      ones &= value;
    }
    if (undecided == 0 || ++group == kDigitGroups) break;
    digits += tables;
    four = *digits;
  }
  // Down is impossible where all digits are ones.
  return up | (undecided & ones);
}

__global__ void set_kernel(BitProgress* progress, BitProgress now) { *progress = now; }
__global__ void add_kernel(BitProgress* progress, std::uint32_t sweeps, std::uint32_t states) {
  progress->sweeps += sweeps;
  progress->states += states;
}

/// Word k of a state, which is number `states` of those that are counted.
__device__ inline void count(const PlanesView& view, std::size_t k, std::uint32_t word, std::uint32_t states) {
  const unsigned full_levels = __ffs(static_cast<int>(~states)) - 1;
  std::uint32_t carry = word;
  for (unsigned level = 0; level < full_levels; ++level) {
    std::uint32_t& plane = view.planes[level * view.size + k];
    const std::uint32_t a = plane, b = view.pending[level * view.size + k];
    plane = a ^ b ^ carry;
    carry = (a & b) | (carry & (a ^ b));
  }
  view.pending[full_levels * view.size + k] = carry;
}

__global__ void count_kernel(PlanesView view, const std::uint32_t* state, const BitProgress* progress,
                             std::uint32_t ahead) {
  const std::size_t k = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (k >= view.size) return;
  wait_for_the_one_before();
  count(view, k, state[k], progress->states + ahead);
}

/// Count of one chain in the planes.
__device__ inline std::uint32_t recent_count(const PlanesView& view, std::size_t k, unsigned bit) {
  std::uint32_t count = 0;
  for (unsigned level = 0; level < kPlanes; ++level) {
    count += (view.planes[level * view.size + k] >> bit & 1U) << level;
    if ((view.states >> level & 1U) != 0) count += (view.pending[level * view.size + k] >> bit & 1U) << level;
  }
  return count;
}

__global__ void spill_kernel(PlanesView view, std::uint32_t* spilled) {
  const std::size_t k = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (k >= view.size) return;
  for (unsigned bit = 0; bit < kWordChains; ++bit) {
    spilled[k * kWordChains + bit] += recent_count(view, k, bit);
  }
}

__global__ void gather_kernel(PlanesView view, GatherView which, std::uint64_t* out) {
  const std::size_t number = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (number >= which.count) return;
  const std::size_t bit = which.first + number * which.step;
  std::uint64_t count = recent_count(view, bit / kWordChains, static_cast<unsigned>(bit % kWordChains));
  if (which.spilled != nullptr) count += which.spilled[bit];
  out[number] = count;
}

/// Which of the threads that sweep this is.
struct SweepAt {
  std::uint32_t variable;  // of the run
  std::uint32_t word;
  unsigned thread;  // of the block
};

/// Where states before and after a sweep are apart, those who are in front of the run have had their turn.
template <unsigned size, bool apart, bool counts>
__device__ inline void sweep(const RunView& run, const SweepView& view, const SweepAt& at, Functions& functions) {
  const std::uint32_t k = at.variable, word = at.word;
  if (k >= run.count || word >= view.words) return;
  std::size_t offset[size];
#pragma unroll
  for (unsigned j = 0; j < size; ++j) {
    const std::uint32_t position = run.blanket[j * run.count + k];
    offset[j] = static_cast<std::size_t>(position) * view.words + word;
  }
  const Digits<size>* const digits = static_cast<const Digits<size>*>(run.digits) + run.table[k];
  const Digits<size> four = *digits;
  const WordKeys keys = view.keys[word];
  const std::uint32_t chains = view.chains[word];
  const std::uint32_t variable = run.variable[k];
  wait_for_the_one_before();
  std::uint32_t x[size];
#pragma unroll
  for (unsigned j = 0; j < size; ++j) {
    const bool is_new = !apart || offset[j] < static_cast<std::size_t>(run.first) * view.words;
    x[j] = (is_new ? view.state : view.before)[offset[j]];
  }
  functions.fill(at.thread, x[0], x[1]);
  const std::uint64_t first_update = (view.progress->sweeps + view.ahead) * view.variables;
  const std::uint64_t scattered = ((first_update + variable) * kDigitGroups) * kStep;
  const std::uint32_t drawn = draw<size>(digits, run.tables, keys, scattered, chains, functions,
                                         at.thread * static_cast<unsigned>(sizeof(std::uint32_t)), four, x);
  const std::size_t own = static_cast<std::size_t>(run.first + k) * view.words + word;
  view.state[own] = drawn;
  if constexpr (counts) count(view.counts, own, drawn, view.progress->states + view.ahead);
}

template <unsigned size, bool apart, bool counts>
__global__ void __launch_bounds__(kThreads) sweep_kernel(RunView run, SweepView view) {
  __shared__ Functions functions;
  sweep<size, apart, counts>(run, view,
                             {blockIdx.x * blockDim.y + threadIdx.y, blockIdx.y * blockDim.x + threadIdx.x,
                              threadIdx.y * blockDim.x + threadIdx.x},
                             functions);
}

/// Sums the states of as many draws as the grid has rows.
__global__ void __launch_bounds__(kThreads) sums_kernel(SumsView sums) {
  __shared__ SumsTile tile;
  sums.terms.state += blockIdx.y * sums.between_states;
  sums.out += blockIdx.y * sums.between_sums;
  sum_block(sums, blockIdx.x, tile);
}

/// Adds up the slices of a draw.
__global__ void whole_sums_kernel(SumsView sums, std::size_t width, std::int64_t* out) {
  const std::size_t k = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (k >= width) return;
  const std::int64_t* const from = sums.out + blockIdx.y * sums.slices * width + k;
  // The last fourth are differences from the reference.
  std::int64_t sum = k >= width / 4 * 3 ? sums.terms.reference_bits : 0;
#pragma unroll 8
  for (std::uint32_t slice = 0; slice < sums.slices; ++slice) sum += from[slice * width];
  out[blockIdx.y * width + k] = sum;
}

__global__ void pack_kernel(PackView view) {
  const std::uint32_t lane = blockIdx.y * blockDim.x + threadIdx.x;
  if (lane >= view.lanes) return;
  const std::uint32_t number = view.first + lane;
  const std::uint32_t first = blockIdx.x * 32;
  std::uint32_t bits = 0;
  for (std::uint32_t k = 0; k < 32 && first + k < view.positions; ++k) {
    const std::uint32_t word = view.state[static_cast<std::size_t>(first + k) * view.words + number / kWordChains];
    bits |= (word >> (number % kWordChains) & 1U) << k;
  }
  view.packed[static_cast<std::size_t>(lane) * view.stride + blockIdx.x] = bits;
}

__global__ void unpack_kernel(PackView view) {
  const std::uint32_t position = blockIdx.x * blockDim.x + threadIdx.x;
  if (position >= view.positions) return;
  std::uint32_t word = 0;
  for (std::uint32_t k = 0; k < kWordChains; ++k) {
    const std::uint32_t number = blockIdx.y * kWordChains + k;
    if (number < view.first || number >= view.first + view.lanes) continue;
    const std::uint32_t bits = view.packed[static_cast<std::size_t>(number - view.first) * view.stride + position / 32];
    word |= (bits >> (position % 32) & 1U) << k;
  }
  view.state[static_cast<std::size_t>(position) * view.words + blockIdx.y] = word;
}

__global__ void levels_kernel(LevelsView view, std::uint8_t* out) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= view.variables) return;
  const std::uint32_t lane = view.first + blockIdx.y;
  out[static_cast<std::size_t>(blockIdx.y) * view.variables + i] = static_cast<std::uint8_t>(
      view.state[static_cast<std::size_t>(view.position[i]) * view.words + lane / kWordChains] >> (lane % kWordChains) &
      1U);
}

}  // namespace

void launch_progress(BitProgress* progress, const BitProgress& now, cudaStream_t stream) {
  set_kernel<<<1, 1, 0, stream>>>(progress, now);
}

void launch_progress(BitProgress* progress, std::uint32_t sweeps, std::uint32_t states, cudaStream_t stream) {
  add_kernel<<<1, 1, 0, stream>>>(progress, sweeps, states);
}

namespace {

// Shared memory of sweeps and of sums beside them: enough for as many blocks of sweeps as registers allow.
constexpr int kSharedPercent = 57;

/// A warp has words side by side, up to 32 of them, and if there are fewer, variables.
dim3 threads_for(std::uint32_t words) {
  unsigned across = 1;
  while (across < 32 && across < words) across *= 2;
  return dim3(across, kThreads / across);
}

/// Calls use(size), with a size of blankets that the compiler knows.
template <class Use>
void with_size(unsigned size, Use&& use) {
  switch (size) {
    case 4: use(std::integral_constant<unsigned, 4>()); break;
    case 5: use(std::integral_constant<unsigned, 5>()); break;
    default: use(std::integral_constant<unsigned, 6>()); break;
  }
}

}  // namespace

void launch_sweep(const RunView& run, const SweepView& view, cudaStream_t stream) {
  const dim3 threads = threads_for(view.words);
  const dim3 blocks(blocks_for(run.count, threads.y), blocks_for(view.words, threads.x));
  const bool apart = view.before != view.state;
  with_size(run.size, [&](auto size) {
    const auto kernel = view.counts.planes == nullptr
                            ? (apart ? sweep_kernel<size(), true, false> : sweep_kernel<size(), false, false>)
                            : (apart ? sweep_kernel<size(), true, true> : sweep_kernel<size(), false, true>);
    prefer_shared_memory(kernel, kSharedPercent);
    launch_after(kernel, {blocks, threads, 0, stream}, run, view);
  });
}

void launch_count(const PlanesView& view, const std::uint32_t* state, const BitProgress* progress, std::uint32_t ahead,
                  cudaStream_t stream) {
  launch_after(count_kernel, {dim3(blocks_for(view.size, kThreads)), dim3(kThreads), 0, stream}, view, state, progress,
               ahead);
}

void launch_spill(const PlanesView& view, std::uint32_t* spilled) {
  spill_kernel<<<blocks_for(view.size, kThreads), kThreads>>>(view, spilled);
}

void launch_gather(const PlanesView& view, const GatherView& which, std::uint64_t* out) {
  gather_kernel<<<blocks_for(which.count, kThreads), kThreads>>>(view, which, out);
}

std::uint32_t slices_of_sums(const TermsView& terms, std::size_t draws) {
  // That keep a large device busy; where there are several draws, beside sweeps, which are to find room.
  const std::size_t most = draws > 1 ? 528 : 1056;
  constexpr std::size_t kMostGroups = std::size_t{1} << 16;  // of a slice: sums of digits have 31 bits
  const std::size_t groups = blocks_for(std::max(terms.positions, terms.edges), 32 * SumsPlan::kParts);
  const std::size_t least = groups / kMostGroups + 1;
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(most / (SumsPlan::blocks_for(terms) * draws), least,
                                                            std::max<std::size_t>(least, groups)));
}

void launch_sums(const SumsView& sums, std::uint32_t draws, cudaStream_t stream) {
  prefer_shared_memory(sums_kernel, kSharedPercent);
  sums_kernel<<<dim3(SumsPlan(sums).blocks(), draws), kThreads, 0, stream>>>(sums);
}

void launch_whole_sums(const SumsView& first, std::uint32_t draws, std::int64_t* out, cudaStream_t stream) {
  const std::size_t width = 4 * static_cast<std::size_t>(first.terms.words) * kWordChains;
  const dim3 blocks(blocks_for(width, kThreads), draws);
  whole_sums_kernel<<<blocks, kThreads, 0, stream>>>(first, width, out);
}

void launch_pack(const PackView& view) {
  const dim3 blocks(view.stride, blocks_for(view.lanes, kThreads));
  pack_kernel<<<blocks, kThreads>>>(view);
}

void launch_unpack(const PackView& view) {
  const dim3 blocks(blocks_for(view.positions, kThreads), view.words);
  unpack_kernel<<<blocks, kThreads>>>(view);
}

void launch_levels(const LevelsView& view, std::uint8_t* out) {
  const dim3 blocks(blocks_for(view.variables, kThreads), view.count);
  levels_kernel<<<blocks, kThreads>>>(view, out);
}

}  // namespace poise::cuda
