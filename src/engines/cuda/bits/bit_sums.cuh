/// Sums over the terms of log p of chains that are bits.
///
/// A block takes the 256 chains of eight words side by side, which lie in one sector of memory, and 32 positions, or
/// edges, of all of them at a time; each of its warps has the chains of one word. What has weights is a product of bits
/// and digits on tensor cores. What is only counted is counted in planes of bits first.
#pragma once

#include "engines/cuda/bits/bit_kernels.hpp"
#include "engines/cuda/common/kernel.cuh"
#include "engines/cuda/common/sum_digits.hpp"

namespace poise::cuda {

// Words of bits: random ones, Boolean functions of two of them, transposing 32 of them.

/// Positions of random words one after the other differ by this, before they are mixed.
inline constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;

/// `offset` is the first key and a position times kStep, added (lanes/keyed_words.hpp).
__device__ inline std::uint64_t mixed(std::uint64_t offset, std::uint64_t second_key) {
  std::uint64_t word = (offset ^ (offset >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27) ^ second_key) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

/// All sixteen functions of two words of bits, a column for each thread.
struct Functions {
  std::uint32_t of[16 * kThreads];

  __device__ void fill(unsigned thread, std::uint32_t a, std::uint32_t b) {
    const std::uint32_t values[16] = {0,     ~(a | b), a & ~b, ~b,     b & ~a, ~a,     a ^ b, ~(a & b),
                                      a & b, ~(a ^ b), a,      a | ~b, b,      b | ~a, a | b, ~0U};
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) of[k * kThreads + thread] = values[k];
  }

  /// The function whose table is four bits of `digit`, from bit `first` on. `column` is the offset of the thread's
  /// column in bytes, which fits below that of a function: one operation joins them.
  template <unsigned first>
  __device__ std::uint32_t at(std::uint32_t digit, unsigned column) const {
    constexpr unsigned row = kThreads * sizeof(std::uint32_t);
    constexpr int shift = static_cast<int>(first) - 10;
    static_assert(row == 1U << 10);
    const std::uint32_t moved = shift >= 0 ? digit >> (shift >= 0 ? shift : 0) : digit << (shift < 0 ? -shift : 0);
    return *reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const char*>(of) + ((moved & 15 * row) | column));
  }
};

__device__ inline std::uint32_t select(std::uint32_t by, std::uint32_t zero, std::uint32_t one) {
  return (by & one) | (~by & zero);
}

template <unsigned lookups, unsigned k = 0>
__device__ inline void look_up(std::uint64_t digit, const Functions& functions, unsigned column,
                               std::uint32_t (&value)[lookups]) {
  if constexpr (k < lookups) {
    value[k] = functions.at<4 * k % 32>(static_cast<std::uint32_t>(digit >> (4 * k / 32 * 32)), column);
    look_up<lookups, k + 1>(digit, functions, column, value);
  }
}

/// Takes of each two values the first where neighbour j is down and the second where it is up, and so on until one is
/// left.
template <unsigned count, unsigned j, unsigned lookups, unsigned size>
__device__ inline void choose(std::uint32_t (&value)[lookups], const std::uint32_t (&x)[size]) {
  if constexpr (count > 1) {
#pragma unroll
    for (unsigned m = 0; m < count / 2; ++m) value[m] = select(x[j], value[2 * m], value[2 * m + 1]);
    choose<count / 2, j + 1>(value, x);
  }
}

/// A digit of 32 probabilities: the first two neighbours select by looking up, the others by choosing.
template <unsigned size>
__device__ inline std::uint32_t digit_of(typename DigitOf<size>::type digit, const Functions& functions,
                                         unsigned column, const std::uint32_t (&x)[size]) {
  constexpr unsigned lookups = 1U << (size - 2);
  std::uint32_t value[lookups];
  look_up<lookups>(digit, functions, column, value);
  choose<lookups, 2>(value, x);
  return value[0];
}

/// Transposes the words of 32 lanes: bit k of lane c becomes what bit c of lane k was.
__device__ inline std::uint32_t transpose(std::uint32_t word, unsigned lane) {
  std::uint32_t low = 0x0000ffffU;
#pragma unroll
  for (unsigned distance = 16; distance > 0; distance /= 2) {
    const std::uint32_t other = __shfl_xor_sync(0xffffffffU, word, static_cast<int>(distance));
    word =
        (lane & distance) == 0 ? (word & low) | (other & low) << distance : (word & ~low) | (other & ~low) >> distance;
    low ^= low << distance / 2;
  }
  return word;
}

/// How sums are divided among blocks.
struct SumsPlan {
  static constexpr std::uint32_t kWords = kThreads / 32;  // of a block
  static constexpr std::uint32_t kParts = 4;              // of 32 positions or edges, that are loaded together
  std::uint32_t slices;
  std::uint32_t blocks_of_words;

  __host__ __device__ explicit SumsPlan(const SumsView& sums)
      : slices(sums.slices), blocks_of_words(blocks_for(sums.terms)) {}
  [[nodiscard]] __host__ __device__ static std::uint32_t blocks_for(const TermsView& terms) {
    return (terms.words + kWords - 1) / kWords;
  }
  [[nodiscard]] __host__ __device__ std::uint32_t blocks() const { return blocks_of_words * slices; }
};

/// Words of parts, those of 32 positions of a word side by side; they are four apart, against conflicts of banks.
struct alignas(16) SumsTile {
  std::uint32_t word[SumsPlan::kParts][SumsPlan::kWords][32 + 4];
};

/// A block of those that sum.
struct SumsBlock {
  const TermsView& view;
  SumsPlan plan;
  std::uint32_t block;
  SumsTile& tile;
  unsigned warp, lane;         // of this thread
  unsigned row, column;        // where it writes in the tile
  const std::uint32_t* words;  // of its column

  __device__ SumsBlock(const SumsView& sums, std::uint32_t the_block, SumsTile& the_tile)
      : view(sums.terms), plan(sums), block(the_block), tile(the_tile) {
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    warp = thread / 32, lane = thread % 32;
    row = thread / SumsPlan::kWords, column = thread % SumsPlan::kWords;
    // Columns beyond the last word have its sums, which are not stored.
    words = view.state + min(first_word() + column, view.words - 1);
  }

  __device__ std::uint32_t first_word() const { return block % plan.blocks_of_words * SumsPlan::kWords; }
  __device__ std::uint32_t slice() const { return block / plan.blocks_of_words; }
  __device__ std::uint32_t at(std::uint32_t position) const {
    return words[static_cast<std::size_t>(position) * view.words];
  }
  /// Where the ends of an edge differ.
  __device__ std::uint32_t at_edge(std::uint32_t edge) const {
    const uint2 ends = __ldg(reinterpret_cast<const uint2*>(view.ends) + edge);
    return at(ends.x) ^ at(ends.y);
  }

  /// Calls use(first, own) for the numbers of the slice: `own` are what load(number) gives for those at the row of this
  /// thread in kParts parts from `first` on.
  template <class Load, class Use>
  __device__ void for_parts(std::uint32_t count, Load&& load, Use&& use) const {
    constexpr std::uint32_t kTogether = 32 * SumsPlan::kParts;
    for (std::uint32_t first = slice() * kTogether; first < count; first += plan.slices * kTogether) {
      std::uint32_t own[SumsPlan::kParts];
#pragma unroll
      for (unsigned k = 0; k < SumsPlan::kParts; ++k) {
        const std::uint32_t number = first + 32 * k + row;
        own[k] = number < count ? load(number) : 0U;
      }
      use(first, own);
    }
  }
  /// Has the words of all threads in the tile while use() is called.
  template <class Use>
  __device__ void share(const std::uint32_t (&own)[SumsPlan::kParts], Use&& use) const {
#pragma unroll
    for (unsigned k = 0; k < SumsPlan::kParts; ++k) tile.word[k][column][row] = own[k];
    __syncthreads();
    use();
    __syncthreads();
  }
};

/// How many bits are set in each chain.
class BitCounter {
 public:
  __device__ void add(const SumsBlock& block, const std::uint32_t (&words)[4]) {
    const std::uint32_t three = words[0] ^ words[1] ^ words[2];
    const std::uint32_t two = most(words[0], words[1], words[2]);
    const std::uint32_t more = most(three, words[3], planes_[0]);
    planes_[0] ^= three ^ words[3];
    std::uint32_t carry = most(two, more, planes_[1]);
    planes_[1] ^= two ^ more;
#pragma unroll
    for (unsigned level = 2; level < kLevels; ++level) {
      const std::uint32_t next = planes_[level] & carry;
      planes_[level] ^= carry;
      carry = next;
    }
    added_ += 4;
    if (added_ + 4 >= 1U << kLevels) spill(block);
  }
  /// The count of the chain of this lane.
  __device__ std::int64_t count(const SumsBlock& block) {
    spill(block);
    return count_;
  }

 private:
  static constexpr unsigned kLevels = 2 * SumsPlan::kParts;

  __device__ static std::uint32_t most(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return (a & b) | (c & (a ^ b));
  }
  __device__ void spill(const SumsBlock& block) {
#pragma unroll
    for (unsigned first = 0; first < kLevels; first += SumsPlan::kParts) {
      if (added_ >> first == 0) break;
      std::uint32_t some[SumsPlan::kParts];
#pragma unroll
      for (unsigned k = 0; k < SumsPlan::kParts; ++k) some[k] = planes_[first + k];
      block.share(some, [&] {
#pragma unroll
        for (unsigned k = 0; k < SumsPlan::kParts; ++k) {
          count_ += __popc(transpose(block.tile.word[k][block.warp][block.lane], block.lane)) << (first + k);
        }
      });
    }
#pragma unroll
    for (std::uint32_t& plane : planes_) plane = 0;
    added_ = 0;
  }

  std::uint32_t planes_[kLevels] = {};  // of the words of this thread
  unsigned added_ = 0;
  std::int64_t count_ = 0;
};

/// Sums of numbers whose bits are set, by their digits (sum_digits.hpp), of 32 chains in a warp.
class DigitSums {
 public:
  __device__ explicit DigitSums(const std::uint32_t* rows) : rows_(reinterpret_cast<const uint4*>(rows)) {}

  __device__ void add(const SumsBlock& block, std::uint32_t first, std::uint32_t count,
                      const std::uint32_t (&words)[4]) {
    block.share(words, [&] {
#pragma unroll
      for (unsigned k = 0; k < SumsPlan::kParts; ++k) {
        if (first + 32 * k < count) add_part(block, k, __ldg(rows_ + first + 32 * k + block.lane));
      }
    });
  }

  /// The sum of numbers, of the chain 8 * tile + 2 * (lane % 4) + which.
  __device__ std::int64_t sum(unsigned tile, unsigned which, unsigned lane) const {
    auto sum = static_cast<unsigned long long>(static_cast<long long>(sums_[tile][which])) << 8 * (lane / 4);
    for (unsigned distance = 4; distance < 32; distance *= 2) {
      sum += __shfl_xor_sync(0xffffffffU, sum, static_cast<int>(distance));
    }
    return static_cast<std::int64_t>(sum);
  }
  /// That of row 8 + lane / 4, of the same chain.
  __device__ std::int32_t row(unsigned tile, unsigned which) const { return sums_[tile][2 + which]; }

 private:
  /// Lanes have the columns of chains lane / 4, and those eight further, ...: a byte of each shifted word.
  __device__ void add_part(const SumsBlock& block, unsigned part, const uint4& rows) {
    std::uint32_t columns[2][4];  // [numbers][tile]
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
      const uint4 four =
          *reinterpret_cast<const uint4*>(block.tile.word[part][block.warp] + 16 * half + block.lane % 4 * 4);
      std::uint32_t x[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (std::uint32_t& word : x) word = word >> block.lane / 4 & 0x01010101U;
      const std::uint32_t low = __byte_perm(x[0], x[1], 0x5140), high = __byte_perm(x[0], x[1], 0x7362);
      const std::uint32_t more_low = __byte_perm(x[2], x[3], 0x5140), more_high = __byte_perm(x[2], x[3], 0x7362);
      columns[half][0] = __byte_perm(low, more_low, 0x5410);
      columns[half][1] = __byte_perm(low, more_low, 0x7632);
      columns[half][2] = __byte_perm(high, more_high, 0x5410);
      columns[half][3] = __byte_perm(high, more_high, 0x7632);
    }
    const std::uint32_t four[4] = {rows.x, rows.y, rows.z, rows.w};
#pragma unroll
    for (unsigned tile = 0; tile < 4; ++tile) {
      const std::uint32_t both[2] = {columns[0][tile], columns[1][tile]};
      multiply_bytes(sums_[tile], four, both);
    }
  }

  const uint4* rows_;
  std::int32_t sums_[4][4] = {};
};

/// What a block of those that sum has.
__device__ inline void sum_block(const SumsView& sums, std::uint32_t number, SumsTile& tile) {
  const SumsBlock block(sums, number, tile);
  const TermsView& view = sums.terms;
  const std::uint32_t word = block.first_word() + block.warp;
  const std::size_t lanes = static_cast<std::size_t>(view.words) * kWordChains;
  std::int64_t* const to = sums.out + block.slice() * 4 * lanes + static_cast<std::size_t>(word) * kWordChains;
  const auto for_chains = [&](auto&& use) {
#pragma unroll
    for (unsigned square = 0; square < 4; ++square) {
#pragma unroll
      for (unsigned which = 0; which < 2; ++which) use(square, which, 8 * square + block.lane % 4 * 2 + which);
    }
  };

  DigitSums fields(view.fields);
  block.for_parts(
      view.positions, [&](std::uint32_t position) { return block.at(position); },
      [&](std::uint32_t first, const auto& words) { fields.add(block, first, view.positions, words); });
  for_chains([&](unsigned square, unsigned which, unsigned chain) {
    const std::int64_t sum = fields.sum(square, which, block.lane);
    if (word >= view.words) return;
    if (block.lane / 4 + 8 == kOnesRow) to[chain] = fields.row(square, which);
    if (block.lane / 4 == 0) to[lanes + chain] = sum;
    if (block.lane / 4 + 8 == kDifferenceRow) to[3 * lanes + chain] = fields.row(square, which);
  });

  const auto at_edge = [&](std::uint32_t edge) { return block.at_edge(edge); };
  if (view.weights == nullptr) {
    BitCounter edges;
    block.for_parts(view.edges, at_edge, [&](std::uint32_t, const auto& words) { edges.add(block, words); });
    const std::int64_t count = edges.count(block);
    if (word < view.words) to[2 * lanes + block.lane] = count;
    return;
  }
  DigitSums weights(view.weights);
  block.for_parts(view.edges, at_edge,
                  [&](std::uint32_t first, const auto& words) { weights.add(block, first, view.edges, words); });
  for_chains([&](unsigned square, unsigned which, unsigned chain) {
    const std::int64_t sum = weights.sum(square, which, block.lane);
    if (word < view.words && block.lane / 4 == 0) to[2 * lanes + chain] = sum;
  });
}

}  // namespace poise::cuda
