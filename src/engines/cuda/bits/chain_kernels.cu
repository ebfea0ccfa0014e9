/// Kernels of few chains: a warp has up to 32 words of 32 variables.
///
/// The random word that a variable takes its four digits from is made for sixteen chains, so that chains are the same
/// in whatever company: nearly all of the time goes there.
#include "engines/cuda/bits/chain_kernels.hpp"

#include <algorithm>

#include "engines/cuda/bits/bit_sums.cuh"
#include "engines/cuda/common/kernel.cuh"

namespace poise::cuda {

namespace {

constexpr unsigned kWarps = kThreads / 32;

/// Four digits of P(up | configuration), the highest first.
template <unsigned size>
__device__ inline unsigned nibble(const ChainRunView& run, unsigned group, std::uint32_t table,
                                  unsigned configuration) {
  constexpr unsigned kWords = (1U << size) / 8;
  const std::size_t row = static_cast<std::size_t>(group) * run.tables + table;
  return __ldg(run.nibbles + row * kWords + configuration / 8) >> 4 * (configuration % 8) & 15U;
}

/// The same of the random number of a chain.
__device__ inline unsigned drawn_digits(std::uint64_t word, unsigned chain) {
  const std::uint32_t low = static_cast<std::uint32_t>(word) >> chain;
  const std::uint32_t high = static_cast<std::uint32_t>(word >> 32) >> chain;
  return (low & 1U) << 3 | (low >> 14 & 4U) | (high << 1 & 2U) | (high >> 16 & 1U);
}

/// Whether a variable is up whose first four digits are those of its probability. `offset` is that of its first word.
template <unsigned size>
__device__ inline bool is_up_after_all(const ChainRunView& run, std::uint32_t table, unsigned configuration,
                                       const ChainKey& key, std::uint64_t offset) {
  bool ones = nibble<size>(run, 0, table, configuration) == 15;
  for (unsigned group = 1; group < kDigitGroups; ++group) {
    offset += kStep;
    const unsigned drawn = drawn_digits(mixed(offset, key.second), key.chain);
    const unsigned value = nibble<size>(run, group, table, configuration);
    if (drawn != value) return drawn < value;
    ones = ones && value == 15;
  }
  return ones;  // down is impossible
}

template <unsigned size>
__device__ inline unsigned configuration_of(const std::uint32_t* x, unsigned bit) {
  unsigned configuration = 0;
#pragma unroll
  for (unsigned j = 0; j < size; ++j) configuration |= (x[j] >> bit & 1U) << j;
  return configuration;
}

/// The neighbours of the variables of a word.
template <unsigned size>
__device__ inline void gather(const ChainRunView& run, const std::uint32_t* state, std::uint32_t word,
                              std::uint32_t (&x)[size]) {
#pragma unroll
  for (unsigned j = 0; j < size; ++j) {
    const std::uint32_t offset = run.together[j * run.words + word];
    if (offset != kApart) {
      x[j] = __funnelshift_r(state[offset / 32], state[offset / 32 + 1], offset % 32);
    } else {
      const std::uint32_t* const own = run.blanket + static_cast<std::size_t>(j) * run.count + 32 * word;
      const unsigned count = min(32U, run.count - 32 * word);
      std::uint32_t bits = 0;
      for (unsigned k = 0; k < count; ++k) bits |= (state[own[k] / 32] >> own[k] % 32 & 1U) << k;
      x[j] = bits;
    }
  }
}

/// 32 variables with one table, by one thread: digits of all of them are compared together.
template <unsigned size>
__device__ inline std::uint32_t draw_alike(const ChainRunView& run, std::uint32_t word, const ChainKey& key,
                                           std::uint64_t first_update, const Functions& functions,
                                           const std::uint32_t (&x)[size]) {
  const std::uint32_t table = run.alike[word];
  const std::uint64_t first =
      key.first + (first_update + run.variable[32 * word]) * (std::uint64_t{kDigitGroups} * kStep);
  const std::uint64_t away = run.stride * (std::uint64_t{kDigitGroups} * kStep);
  // Digits 0 and 1 of a chain are sixteen bits apart, as are 2 and 3; so they are collected, sixteen variables a time.
  constexpr std::uint32_t kTops = 0x80008000U;
  std::uint32_t low[2], high[2];
  std::uint64_t offset = first;
  const unsigned shift = 15 - key.chain;
#pragma unroll
  for (unsigned half = 0; half < 2; ++half) {
    std::uint32_t a = 0, b = 0;
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) {
      const std::uint64_t random = mixed(offset, key.second);
      offset += away;
      a = select(kTops, a >> 1, static_cast<std::uint32_t>(random) << shift);
      b = select(kTops, b >> 1, static_cast<std::uint32_t>(random >> 32) << shift);
    }
    low[half] = a;
    high[half] = b;
  }
  const std::uint32_t random[kRandomDigits] = {__byte_perm(low[0], low[1], 0x5410), __byte_perm(low[0], low[1], 0x7632),
                                               __byte_perm(high[0], high[1], 0x5410),
                                               __byte_perm(high[0], high[1], 0x7632)};
  const Digits<size> four = static_cast<const Digits<size>*>(run.digits)[table];
  const unsigned column = threadIdx.x * static_cast<unsigned>(sizeof(std::uint32_t));
  const unsigned count = run.count - 32 * word;
  std::uint32_t undecided = count >= 32 ? ~0U : (1U << count) - 1;
  std::uint32_t up = 0;
#pragma unroll
  for (unsigned a = 0; a < kRandomDigits; ++a) {
    const std::uint32_t value = digit_of<size>(four.digit[a], functions, column, x);
    const std::uint32_t differs = random[a] ^ value;
    up |= undecided & differs & value;
    undecided &= ~differs;
  }
  for (; undecided != 0; undecided &= undecided - 1) {
    const unsigned k = __ffs(static_cast<int>(undecided)) - 1;
    const bool is_up = is_up_after_all<size>(run, table, configuration_of<size>(x, k), key, first + k * away);
    up |= static_cast<std::uint32_t>(is_up) << k;
  }
  return up;
}

/// Words of variables of all kinds, by a warp: a lane has a variable of each. Lane w gets the result of word w.
template <unsigned size>
__device__ inline std::uint32_t draw_words(const ChainRunView& run, std::uint32_t first_word, unsigned words,
                                           const ChainKey& key, std::uint64_t first_update,
                                           const std::uint32_t (*around)[size]) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t first = key.first + first_update * (std::uint64_t{kDigitGroups} * kStep);
  const auto variable_of = [&](unsigned w) { return min(32 * (first_word + w) + lane, run.count - 1); };
  const auto offset_of = [&](std::uint32_t k) {
    return first + run.variable[k] * (std::uint64_t{kDigitGroups} * kStep);
  };
  const auto table_of = [&](std::uint32_t k) { return run.table == nullptr ? k : run.table[k]; };
  std::uint32_t up = 0, undecided = 0;
#pragma unroll 4
  for (unsigned w = 0; w < words; ++w) {
    const std::uint32_t k = variable_of(w);
    const bool is_there = 32 * (first_word + w) + lane < run.count;
    const unsigned value = nibble<size>(run, 0, table_of(k), configuration_of<size>(around[w], lane));
    const unsigned drawn = drawn_digits(mixed(offset_of(k), key.second), key.chain);
    const std::uint32_t word = __ballot_sync(0xffffffffU, is_there && drawn < value);
    if (lane == w) up = word;
    undecided |= static_cast<std::uint32_t>(is_there && drawn == value) << w;
  }
  std::uint32_t late = 0;
  for (; undecided != 0; undecided &= undecided - 1) {
    const unsigned w = __ffs(static_cast<int>(undecided)) - 1;
    const std::uint32_t k = variable_of(w);
    const bool is_up =
        is_up_after_all<size>(run, table_of(k), configuration_of<size>(around[w], lane), key, offset_of(k));
    late |= static_cast<std::uint32_t>(is_up) << w;
  }
  __syncwarp();
  return up | transpose(late, lane);
}

/// Some words for each warp: many where there are many, so that lanes that are not decided yet wait for few others.
template <unsigned size>
__global__ void __launch_bounds__(kThreads) chain_kernel(ChainRunView run, ChainSweepView view, unsigned of_warp) {
  __shared__ Functions functions;
  __shared__ std::uint32_t around[kThreads][size];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::uint32_t first_word = (blockIdx.x * kWarps + warp) * of_warp;
  if (first_word >= run.words) return;
  std::uint32_t* const state = view.state + static_cast<std::size_t>(blockIdx.y) * view.words;
  const ChainKey key = view.keys[blockIdx.y];
  const unsigned words = min(of_warp, run.words - first_word);
  const std::uint32_t own = first_word + lane;
  const bool has_one = lane < words;
  wait_for_the_one_before();
  const std::uint64_t first_update = (view.progress->sweeps + view.ahead) * view.variables;
  std::uint32_t x[size] = {};
  if (has_one) gather<size>(run, state, own, x);
  std::uint32_t up = 0;
  // A thread with a word of its own does less in all, if most have one.
  if (__all_sync(0xffffffffU, words > 16 && (!has_one || run.alike[own] != kApart))) {
    functions.fill(threadIdx.x, x[0], x[1]);
    if (has_one) up = draw_alike<size>(run, own, key, first_update, functions, x);
  } else {
#pragma unroll
    for (unsigned j = 0; j < size; ++j) around[threadIdx.x][j] = x[j];
    __syncwarp();
    up = draw_words<size>(run, first_word, words, key, first_update, around + 32 * warp);
  }
  if (has_one) state[run.first + own] = up;
}

__device__ inline void add_up(std::int64_t sum, std::int64_t* to) {
  for (unsigned distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffffU, sum, static_cast<int>(distance));
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(sum));
  }
}

__global__ void __launch_bounds__(kThreads) chain_sums_kernel(ChainTermsView view, std::int64_t* out) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint32_t* const state = view.state + static_cast<std::size_t>(blockIdx.y) * view.words;
  const auto at = [&](std::uint32_t offset) { return state[offset / 32] >> offset % 32 & 1U; };
  std::int64_t up = 0, fields = 0, edges = 0, different = 0;
  for (std::uint32_t w = blockIdx.x * kWarps + threadIdx.x / 32; w < view.words; w += gridDim.x * kWarps) {
    const std::uint32_t bits = state[w];
    if (lane == 0) {
      up += __popc(bits);
      different += __popc(bits ^ view.reference[w]);
    }
    if (view.fields != nullptr && (bits >> lane & 1U) != 0)
      fields += view.fields[static_cast<std::size_t>(w) * 32 + lane];
  }
  for (std::uint32_t e = blockIdx.x * kThreads + threadIdx.x; e < view.edges; e += gridDim.x * kThreads) {
    const uint2 ends = reinterpret_cast<const uint2*>(view.ends)[e];
    if (at(ends.x) != at(ends.y)) edges += view.weights == nullptr ? 1 : view.weights[e];
  }
  add_up(up, out + blockIdx.y);
  add_up(fields, out + view.chains + blockIdx.y);
  add_up(edges, out + 2 * view.chains + blockIdx.y);
  add_up(different, out + 3 * view.chains + blockIdx.y);
}

}  // namespace

void launch_chain_sweep(const ChainRunView& run, const ChainSweepView& view, cudaStream_t stream) {
  constexpr unsigned kWarpsOfDevice = 2048;  // that keep a large one busy
  unsigned of_warp = 1;
  while (of_warp < 32 && static_cast<std::size_t>(run.words) * view.chains > std::size_t{of_warp} * kWarpsOfDevice) {
    of_warp *= 2;
  }
  const dim3 blocks(blocks_for(run.words, kWarps * of_warp), view.chains);
  const LaunchShape shape{blocks, dim3(kThreads), 0, stream};
  switch (run.size) {
    case 4: launch_after(chain_kernel<4>, shape, run, view, of_warp); break;
    case 5: launch_after(chain_kernel<5>, shape, run, view, of_warp); break;
    default: launch_after(chain_kernel<6>, shape, run, view, of_warp); break;
  }
}

void launch_chain_sums(const ChainTermsView& terms, std::int64_t* out) {
  constexpr unsigned kMostBlocks = 1056;
  const unsigned blocks =
      std::min(kMostBlocks, blocks_for(std::max<std::size_t>(terms.words * std::size_t{32}, terms.edges), kThreads));
  chain_sums_kernel<<<dim3(blocks, terms.chains), kThreads>>>(terms, out);
}

}  // namespace poise::cuda
