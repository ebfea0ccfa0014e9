/// Words of bits on the device: random ones, Boolean functions of two of them, transposing 32 of them.
#pragma once

#include "engines/cuda/bits/bit_kernels.hpp"

namespace poise::cuda {

/// Positions of random words one after the other differ by this, before they are mixed.
inline constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;

/// `place` is the first key and a position times kStep, added (lanes/keyed_words.hpp).
__device__ inline std::uint64_t mixed(std::uint64_t place, std::uint64_t second_key) {
  std::uint64_t word = (place ^ (place >> 30)) * 0xbf58476d1ce4e5b9;
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

  /// The function whose table is four bits of `digit`, from bit `first` on. `column` is the place of the thread's
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

/// Of each two values the first where neighbour j is down and the second where it is up, and so on until one is left.
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

/// Of the words of 32 lanes: bit k of lane c becomes what bit c of lane k was.
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

inline unsigned blocks_for(std::size_t items, unsigned threads) {
  return static_cast<unsigned>((items + threads - 1) / threads);
}

}  // namespace poise::cuda
