/// Random words for chains that share a word.
///
/// With chains as bits a random word has four binary digits for each of sixteen chains: bit 16 d + c is digit d of
/// chain c. With chains across lanes it has 32 for each of two. It is a function of the seed, the number of these
/// chains, and a position that counts sweeps, variables and digits: a chain sees the same bits whatever other chains
/// there are, however many digits they need, on whatever thread. The function is the output of SplitMix64 (Steele, Lea
/// and Flood 2014) at that position, with a key of 128 bits, half of it added before the first product and half of it
/// in between, so that no two keys run through the same sequence.
#pragma once

#include <array>
#include <cstdint>

#include <poise/extend/base/hot.hpp>
#include <poise/extend/base/rng.hpp>

namespace poise {

/// Chains that share a key, and digits that a word has of each.
inline constexpr unsigned kKeyChains = 16;
inline constexpr unsigned kKeyDigits = 4;

struct WordKey {
  std::uint64_t first;
  std::uint64_t second;
};

/// The key of a group of chains, by its number: sixteen of them where chains are bits, two where they are lanes.
[[nodiscard]] inline WordKey word_key(std::uint64_t seed, Stream purpose, std::uint64_t number) {
  const std::uint64_t stream = static_cast<std::uint64_t>(purpose) + number;
  const auto half = [](std::uint64_t value, unsigned shift) { return static_cast<std::uint32_t>(value >> shift); };
  const std::array<std::uint32_t, 4> block =
      philox({0, 0, half(stream, 0), half(stream, 32)}, {half(seed, 0), half(seed, 32)});
  return {std::uint64_t{block[0]} << 32 | block[1], std::uint64_t{block[2]} << 32 | block[3]};
}

/// Positions one after the other differ by this, before they are mixed.
inline constexpr std::uint64_t kWordStep = 0x9e3779b97f4a7c15;

/// `scattered` is a position times kWordStep. Words are integers or vectors of them.
template <class Word, class Position>
POISE_INLINE void make_keyed_word(const Word& first_key, const Word& second_key, const Position& scattered, Word& out) {
  out = first_key + scattered;
  out = (out ^ (out >> 30)) * std::uint64_t{0xbf58476d1ce4e5b9};
  out = (out ^ (out >> 27) ^ second_key) * std::uint64_t{0x94d049bb133111eb};
  out = out ^ (out >> 31);
}

template <class Word, class Position>
POISE_INLINE Word keyed_word(const Word& first_key, const Word& second_key, const Position& scattered) {
  Word word;
  make_keyed_word(first_key, second_key, scattered, word);
  return word;
}

}  // namespace poise
