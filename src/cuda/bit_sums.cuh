/// Sums over the terms of log p of chains that are bits.
///
/// A warp takes 32 positions, or 32 edges, for the 32 chains of a word: every lane loads one of them, and after
/// transposing has a chain.
#pragma once

#include "bit_words.cuh"
#include "launch.cuh"

namespace poise::cuda {

/// How sums are divided among blocks: into so many slices that they keep a large device busy, whatever the number of
/// chains. Words side by side lie in the same sectors of memory, so a block has eight of them.
struct SumsPlan {
  static constexpr std::uint32_t kWords = kThreads / 32;  // of a block
  std::uint32_t slices;
  std::uint32_t blocks_of_words;

  __host__ __device__ explicit SumsPlan(const TermsView& terms)
      : blocks_of_words((terms.words + kWords - 1) / kWords) {
    constexpr std::uint32_t kWarps = 8448;
    const std::uint32_t parts = ((terms.positions > terms.edges ? terms.positions : terms.edges) + 31) / 32;
    slices = kWarps / terms.words;
    if (slices > parts) slices = parts;
    if (slices < 1) slices = 1;
  }
  [[nodiscard]] __host__ __device__ std::uint32_t blocks() const { return blocks_of_words * slices; }
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

/// Adds a slice to the sums; these are integers, so their order does not matter.
__device__ inline void sum_slice(const SumsView& sums, std::uint32_t slices, std::uint32_t word, std::uint32_t slice) {
  const TermsView& view = sums.terms;
  const unsigned lane = (threadIdx.y * blockDim.x + threadIdx.x) % 32;
  const auto at = [&](std::uint32_t position) {
    return view.state[static_cast<std::size_t>(position) * view.words + word];
  };
  const std::size_t lanes = static_cast<std::size_t>(view.words) * kWordChains;
  auto* const to = reinterpret_cast<Sum*>(sums.out) + word * kWordChains + lane;
  const auto add = [&](std::size_t number, std::int64_t sum) { atomicAdd(to + number * lanes, static_cast<Sum>(sum)); };
  if (slice * 32 < view.positions) {
    std::int64_t up = 0, fields = 0, different = 0;
    for (std::uint32_t first = slice * 32; first < view.positions; first += slices * 32) {
      const std::uint32_t position = first + lane;
      const bool is_there = position < view.positions;
      const std::uint32_t bits = transpose(is_there ? at(position) : 0U, lane);
      const std::uint32_t reference = __ballot_sync(0xffffffffU, is_there && view.reference[position] != 0);
      up += __popc(bits);
      different += __popc(bits ^ reference);
      if (view.fields != nullptr) fields += sum_where(bits, view.fields + first);
    }
    add(0, up);
    if (view.fields != nullptr) add(1, fields);
    add(3, different);
  }
  if (slice * 32 < view.edges) {
    std::int64_t edges = 0;
    for (std::uint32_t first = slice * 32; first < view.edges; first += slices * 32) {
      const std::uint32_t edge = first + lane;
      std::uint32_t differs = 0;
      if (edge < view.edges) {
        const uint2 ends = __ldg(reinterpret_cast<const uint2*>(view.ends) + edge);
        differs = at(ends.x) ^ at(ends.y);
      }
      const std::uint32_t bits = transpose(differs, lane);
      edges += view.weights == nullptr ? __popc(bits) : sum_where(bits, view.weights + first);
    }
    add(2, edges);
  }
}

/// What a block of those that sum has.
__device__ inline void sum_block(const SumsView& sums, std::uint32_t block) {
  const SumsPlan plan(sums.terms);
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  const std::uint32_t word = block % plan.blocks_of_words * SumsPlan::kWords + thread / 32;
  wait_for_the_one_before();
  if (word < sums.terms.words) sum_slice(sums, plan.slices, word, block / plan.blocks_of_words);
}

}  // namespace poise::cuda
