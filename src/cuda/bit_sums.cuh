/// Sums over the terms of log p of chains that are bits.
///
/// A block takes the 256 chains of eight words side by side, which lie in one sector of memory. It loads 32 positions,
/// or edges, of all of them, some times over; each warp then transposes those of one word, and its lanes have a chain.
#pragma once

#include "bit_words.cuh"

namespace poise::cuda {

/// How sums are divided among blocks.
struct SumsPlan {
  static constexpr std::uint32_t kWords = kThreads / 32;  // of a block
  static constexpr std::uint32_t kParts = 4;              // of 32 positions or edges, that are loaded together
  std::uint32_t slices;
  std::uint32_t blocks_of_words;

  __host__ __device__ explicit SumsPlan(const TermsView& terms)
      : blocks_of_words((terms.words + kWords - 1) / kWords) {
    constexpr std::uint32_t kBlocks = 528;  // that keep a large device busy
    const std::uint32_t most = terms.positions > terms.edges ? terms.positions : terms.edges;
    const std::uint32_t groups = (most + 32 * kParts - 1) / (32 * kParts);
    slices = kBlocks / blocks_of_words;
    if (slices > groups) slices = groups;
    if (slices < 1) slices = 1;
  }
  [[nodiscard]] __host__ __device__ std::uint32_t blocks() const { return blocks_of_words * slices; }
};

/// Words of the parts that were loaded; rows are one word longer than those of a block, against conflicts of banks.
struct SumsTile {
  std::uint32_t word[SumsPlan::kParts][32][SumsPlan::kWords + 1];
};

/// Of the numbers of a part of 32, those whose bits are set.
__device__ inline std::int64_t sum_where(std::uint32_t bits, const std::int64_t* part) {
  std::int64_t sum = 0;
#pragma unroll
  for (unsigned k = 0; k < 32; k += 2) {
    const longlong2 two = __ldg(reinterpret_cast<const longlong2*>(part + k));
    if ((bits >> k & 1U) != 0) sum += two.x;
    if ((bits >> k & 2U) != 0) sum += two.y;
  }
  return sum;
}

/// Calls use(bits, first) for parts of `count` numbers that a block has: `bits` are those of a lane's chain in numbers
/// first to first + 31. load(number, word) gives them for 32 chains.
template <class Load, class Use>
__device__ inline void for_parts(const SumsPlan& plan, std::uint32_t block, std::uint32_t count, SumsTile& tile,
                                 Load&& load, Use&& use) {
  constexpr std::uint32_t kParts = SumsPlan::kParts, kWords = SumsPlan::kWords;
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x, warp = thread / 32, lane = thread % 32;
  const unsigned row = thread / kWords, column = thread % kWords;
  const std::uint32_t word = block % plan.blocks_of_words * kWords + column;
  for (std::uint32_t first = block / plan.blocks_of_words * 32 * kParts; first < count;
       first += plan.slices * 32 * kParts) {
#pragma unroll
    for (unsigned k = 0; k < kParts; ++k) {
      const std::uint32_t number = first + 32 * k + row;
      tile.word[k][row][column] = number < count ? load(number, word) : 0U;
    }
    __syncthreads();
#pragma unroll
    for (unsigned k = 0; k < kParts; ++k) {
      if (first + 32 * k < count) use(transpose(tile.word[k][lane][warp], lane), first + 32 * k);
    }
    __syncthreads();
  }
}

/// What a block of those that sum has.
__device__ inline void sum_block(const SumsView& sums, std::uint32_t block, SumsTile& tile) {
  const TermsView& view = sums.terms;
  const SumsPlan plan(view);
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x, lane = thread % 32;
  const auto at = [&](std::uint32_t position, std::uint32_t word) {
    return word < view.words ? view.state[static_cast<std::size_t>(position) * view.words + word] : 0U;
  };
  std::int64_t up = 0, fields = 0, edges = 0, different = 0;
  for_parts(
      plan, block, view.edges, tile,
      [&](std::uint32_t edge, std::uint32_t word) {
        const uint2 ends = __ldg(reinterpret_cast<const uint2*>(view.ends) + edge);
        return at(ends.x, word) ^ at(ends.y, word);
      },
      [&](std::uint32_t bits, std::uint32_t first) {
        edges += view.weights == nullptr ? __popc(bits) : sum_where(bits, view.weights + first);
      });
  for_parts(plan, block, view.positions, tile, at, [&](std::uint32_t bits, std::uint32_t first) {
    const std::uint32_t position = first + lane;
    const bool is_up = position < view.positions && view.reference[position] != 0;
    up += __popc(bits);
    different += __popc(bits ^ __ballot_sync(0xffffffffU, is_up));
    if (view.fields != nullptr) fields += sum_where(bits, view.fields + first);
  });
  const std::uint32_t word = block % plan.blocks_of_words * SumsPlan::kWords + thread / 32;
  if (word >= view.words) return;
  const std::size_t lanes = static_cast<std::size_t>(view.words) * kWordChains;
  std::int64_t* const to = sums.out + block / plan.blocks_of_words * 4 * lanes + word * kWordChains + lane;
  to[0] = up;
  to[lanes] = fields;
  to[2 * lanes] = edges;
  to[3 * lanes] = different;
}

}  // namespace poise::cuda
