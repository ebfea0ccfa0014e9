/// Two chains across lanes as an update sees them, with their model and their random words: on a device, and on the
/// host for tests.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "engines/common/host_device.hpp"
#include "engines/cpu/lanes/lane_image.hpp"

namespace poise::cuda {

/// Arrays of a LaneImage.
struct ImageView {
  const ImageVariable* variables;
  const ImagePair* pairs;
  const ImageTerm* terms;
  const ImageOthers* others;
  const float* tables;
  // Zeros of tables, for heated lanes; null where there are none.
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

// Updates that floats cannot tell, settled by integers as on the CPU.

constexpr double kInfinity = __builtin_huge_val();

/// a b + c d, each product and the sum rounded, as compilers for the CPU are told to do.
POISE_BOTH double sum_of_products(double a, double b, double c, double d) {
#ifdef __CUDA_ARCH__
  return __dadd_rn(__dmul_rn(a, b), __dmul_rn(c, d));
#else
  return a * b + c * d;
#endif
}

/// Log weight of a level in units, and zeros among its factors.
struct ExactWeight {
  std::int64_t units;
  std::uint32_t zeros;
};

template <class Two>
POISE_BOTH ExactWeight exact_weight(const ExactView& exact, std::uint32_t position, const Two& two, unsigned chain,
                                    unsigned level) {
  ExactWeight weight{0, 0};
  for (std::uint32_t k = exact.first_link[position]; k < exact.first_link[position + 1]; ++k) {
    const ExactLink link = exact.links[k];
    const ExactFactor factor = exact.factors[link.factor];
    std::size_t entry = factor.first_entry + std::size_t{link.stride} * level;
    for (std::uint32_t s = factor.first_site; s < factor.end_site; ++s) {
      const ExactSite site = exact.sites[s];
      if (site.position == position) continue;
      entry += std::size_t{site.stride} * (levels_at(two, site.position) >> (8 * chain) & 0xffU);
    }
    const std::int64_t units = exact.values[entry];
    if (units == ExactTables::kZero) {
      ++weight.zeros;
      if constexpr (Two::kHeated) weight.units += exact.lowest[link.factor];
    } else {
      weight.units += units;
    }
  }
  return weight;
}

/// log of the ratio of two weights, at the chain's temperature. Differences of units are taken first, as on the CPU.
template <class Two>
POISE_BOTH double log_ratio(const ExactView& exact, const ExactWeight& weight, const ExactWeight& of, const Two& two,
                            unsigned chain) {
  double log = exact.unit * static_cast<double>(weight.units - of.units);
  const int zeros = static_cast<int>(weight.zeros) - static_cast<int>(of.zeros);
  if constexpr (Two::kHeated) {
    const RungHeat heat = two.heat[chain];
    if (zeros != 0 && heat.log_zero != kHardZero) return sum_of_products(heat.beta, log, heat.log_zero, zeros);
    log *= heat.beta;
  }
  if (zeros == 0) return log;
  return zeros > 0 ? -kInfinity : kInfinity;
}

/// The level of one chain by exact weights and all 53 digits, as LaneModel::thresholds has it.
template <class Two>
POISE_BOTH std::uint32_t exact_level(const ExactView& exact, const ImageVariable& variable, std::uint32_t position,
                                     const Two& two, unsigned chain) {
  std::uint64_t drawn = 0;
  for (unsigned k = 0; k < 2; ++k) {
    const std::uint64_t word = lane_word(two.key, two.scattered + variable.scatter + k * kWordStep64);
    drawn = drawn << 32 | (word >> (32 * chain) & 0xffffffffU);
  }
  drawn >>= 11;
  // Many weights are found anew wherever they are needed: room for them would be taken from every thread.
  ExactWeight known[kFewLevels];
  const bool are_known = variable.levels <= kFewLevels;
  for (unsigned v = 0; are_known && v < variable.levels; ++v) known[v] = exact_weight(exact, position, two, chain, v);
  const auto weight_of = [&](unsigned v) {
    return are_known ? known[v] : exact_weight(exact, position, two, chain, v);
  };
  ExactWeight largest = weight_of(0);
  for (unsigned v = 1; v < variable.levels; ++v) {
    const ExactWeight weight = weight_of(v);
    if (log_ratio(exact, weight, largest, two, chain) > 0.0) largest = weight;
  }
  const auto relative = [&](unsigned v) { return exp(log_ratio(exact, weight_of(v), largest, two, chain)); };
  double total = 0.0;
  for (unsigned v = 0; v < variable.levels; ++v) total += relative(v);
  double up_to = 0.0;
  std::uint32_t level = 0;
  for (; level + 1 < variable.levels; ++level) {
    up_to += relative(level);
    if (drawn < static_cast<std::uint64_t>(up_to / total * 9007199254740992.0)) break;
  }
  return level;
}

}  // namespace poise::cuda
