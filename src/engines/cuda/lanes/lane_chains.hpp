/// Two chains across lanes as an update sees them, with their model and their random words: on a device, and on the
/// host for tests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/cpu/lanes/lane_image.hpp"
#include "engines/cuda/common/both.hpp"

namespace poise::cuda {

/// Arrays of a LaneImage.
struct ImageView {
  const ImageVariable* variables;
  const ImagePair* pairs;
  const ImageTerm* terms;
  const ImageOthers* others;
  const float* tables;
  // Of heated lanes, where tables have zeros; null elsewhere.
  const float* zeros;
  const std::uint32_t* zero_tables;
};

/// Arrays of ExactTables.
struct ExactView {
  const std::int64_t* values;
  const ExactFactor* factors;
  const ExactSite* sites;
  const std::uint32_t* first_link;
  const ExactLink* links;
  double unit;
  const std::int64_t* lowest;  ///< null where no zero is heated
};

struct PairKey {
  std::uint64_t first;
  std::uint64_t second;
};

/// Two chains: the level of the first is the low byte of a word, that of the second the high one. `Offset` is what
/// positions times strides fit into.
template <class Offset>
struct TwoChains {
  static constexpr bool kHeated = false;

  std::uint16_t* levels;    ///< at position 0
  std::uint16_t* counts;    ///< of sweeps at a level, at entry 0, a byte for each chain; or null
  Offset stride;            ///< bytes from a position to the next, and from an entry to the next
  float* sums;              ///< of conditional probabilities, at entry 0, two by two; for those who add to them
  std::size_t sums_stride;  ///< floats from an entry to the next
  PairKey key;
  std::uint64_t scattered;  ///< the first random word of variable 0 in this sweep, before it is mixed
  unsigned chains;          ///< bits of those that are chains
};

/// How a lane is heated (LaneHeat of lanes/lane_model.hpp): log weights times beta, and `log_zero` for every zero.
struct RungHeat {
  float beta;
  float log_zero;  ///< kHardZero at the temperature of the distribution itself
};
/// Stands for log 0: far below any sum of others, and several of them are still finite.
constexpr float kHardZero = -1e30F;

/// Two replicas of one ladder. Of these only the one that is cold adds to the sums of the ladder.
template <class Offset>
struct HeatedChains : TwoChains<Offset> {
  static constexpr bool kHeated = true;

  RungHeat heat[2];
  unsigned cold;  ///< its bit, or 0
};

/// Positions of random words one after the other differ by this, before they are mixed (lanes/keyed_words.hpp).
constexpr std::uint64_t kWordStep64 = 0x9e3779b97f4a7c15;
/// Levels up to which weights stay in registers.
constexpr unsigned kFewLevels = 8;
constexpr unsigned kMostLevels = 128;

POISE_BOTH std::uint64_t lane_word(const PairKey& key, std::uint64_t scattered) {
  std::uint64_t word = key.first + scattered;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27) ^ key.second) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

/// 24 of a chain's 32 random digits.
POISE_BOTH float uniform_of(std::uint64_t word, unsigned chain) {
  return static_cast<float>(static_cast<std::uint32_t>(word >> (32 * chain)) >> 8) * 5.9604644775390625e-8F;
}

/// Both levels, each in a half of a word.
POISE_BOTH std::uint32_t in_halves(std::uint32_t levels) {
#ifdef __CUDA_ARCH__
  return __byte_perm(levels, 0, 0x4140);
#else
  return (levels & 0xffU) | (levels & 0xff00U) << 8;
#endif
}

/// The word of both chains at a position or entry.
template <class Offset>
POISE_BOTH std::uint16_t& word_at(std::uint16_t* words, std::uint32_t row, Offset stride) {
  return *reinterpret_cast<std::uint16_t*>(reinterpret_cast<unsigned char*>(words) + row * stride);
}
template <class Offset>
POISE_BOTH std::uint32_t levels_at(const TwoChains<Offset>& two, std::uint32_t position) {
  return word_at(two.levels, position, two.stride);
}

}  // namespace poise::cuda
