/// An update of Gibbs with chains across lanes, of two chains at a time: on a device, and on the host for tests.
///
/// The decision is that of lanes/lane_block.hpp: floats decide where they can, exact integers elsewhere. Two chains
/// share random words, so a thread has both.
///
/// The device's arithmetic is not that of the CPU: its exponential has a relative error of (2 + 1.173 |x|) 2^-23, its
/// quotient one of 2^-22 (CUDA C++ Programming Guide). In units of 2^-24 the exponential makes an error of q (1 - q)
/// (4 + 2.35 |x|) < 1.6 in a probability of one of two levels, the quotient 2, its denominator and the random digits
/// left out 1 each. With more levels the exponentials make 4 + 2.35 log(levels), as the mean of |x| weighed by e^-|x|
/// is at most log(levels), which is under 16; their sums make one for each level, and the rest 3. `margin` is 22 +
/// levels.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <poise/lanes/lane_image.hpp>
#include "both.hpp"

namespace poise::cuda {

/// Arrays of a LaneImage.
struct ImageView {
  const ImageVariable* variables;
  const ImagePair* pairs;
  const ImageTerm* terms;
  const ImageOthers* others;
  const float* tables;
};

/// Arrays of ExactTables.
struct ExactView {
  const std::int64_t* values;
  const ExactFactor* factors;
  const ExactSite* sites;
  const std::uint32_t* first_link;
  const ExactLink* links;
  double unit;
};

struct PairKey {
  std::uint64_t first;
  std::uint64_t second;
};

/// Two chains: the level of the first is the low byte of a word, that of the second the high one. `Offset` is what
/// positions times strides fit into.
template <class Offset>
struct TwoChains {
  std::uint16_t* levels;    ///< at position 0
  std::uint16_t* counts;    ///< of sweeps at a level, at entry 0, a byte for each chain; or null
  Offset stride;            ///< bytes from a position to the next, and from an entry to the next
  float* sums;              ///< of conditional probabilities, at entry 0, two by two; for those who add to them
  std::size_t sums_stride;  ///< floats from an entry to the next
  PairKey key;
  std::uint64_t scattered;  ///< the first random word of variable 0 in this sweep, before it is mixed
  unsigned chains;          ///< bits of those that are chains
};

/// What floats say: levels as bytes, and bits of the chains for which they cannot tell.
struct Drawn {
  std::uint32_t levels;
  std::uint32_t unsure;
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

POISE_BOTH float exp_within(float x, float most) {
  x = fminf(fmaxf(x, -80.0F), most);
#ifdef __CUDA_ARCH__
  return __expf(x);
#else
  return std::exp(x);
#endif
}

POISE_BOTH float quotient(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fdividef(a, b);
#else
  return a / b;
#endif
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

/// Configurations of a term's other variables, of both chains.
template <class Offset>
POISE_BOTH void find_places(const ImageView& image, const ImageTerm& term, const TwoChains<Offset>& two,
                            std::uint32_t (&places)[2]) {
  if (term.bits <= 16) {
    std::uint32_t both = 0;  // halves of a word: no carry leaves the lower one
    for (std::uint32_t k = term.first_others; k < term.end_others; ++k) {
      const ImageOthers others = image.others[k];
      const std::uint32_t first = levels_at(two, others.position[0]), second = levels_at(two, others.position[1]);
      both += in_halves(first) * others.factor[0] + in_halves(second) * others.factor[1];
    }
    places[0] = both & 0xffffU;
    places[1] = both >> 16;
    return;
  }
  places[0] = places[1] = 0;
  for (std::uint32_t k = term.first_others; k < term.end_others; ++k) {
    const ImageOthers others = image.others[k];
    for (unsigned j = 0; j < 2; ++j) {
      const std::uint32_t levels = levels_at(two, others.position[j]);
      places[0] += (levels & 0xffU) * others.factor[j];
      places[1] += (levels >> 8) * others.factor[j];
    }
  }
}

/// One level or the other: q is the probability of level 0, and level 1 it is where the random number is not below.
template <bool kAverage, class Offset>
POISE_BOTH Drawn draw_two(const ImageView& image, const ImageVariable& variable, const TwoChains<Offset>& two) {
  float sum[2] = {variable.base, variable.base};
  for (std::uint32_t k = variable.first_pair; k < variable.end_pair; ++k) {
    const ImagePair pair = image.pairs[k];
    const std::uint32_t levels = levels_at(two, pair.position);
    sum[0] += (levels & 0xffU) != 0 ? pair.log_odds[1] : pair.log_odds[0];
    sum[1] += (levels & 0xff00U) != 0 ? pair.log_odds[1] : pair.log_odds[0];
  }
  for (std::uint32_t k = variable.first_term; k < variable.end_term; ++k) {
    const ImageTerm term = image.terms[k];
    std::uint32_t places[2];
    find_places(image, term, two, places);
    sum[0] += image.tables[term.table + places[0]];
    sum[1] += image.tables[term.table + places[1]];
  }
  const std::uint64_t word = lane_word(two.key, two.scattered + variable.scatter);
  Drawn drawn{0, 0};
  POISE_UNROLL
  for (unsigned c = 0; c < 2; ++c) {
    const float odds = exp_within(sum[c], 80.0F);
    const float q = quotient(1.0F, odds + 1.0F);
    const float beyond = uniform_of(word, c) - q;
    const float error = fminf(q, 1.0F - q) * variable.spread + variable.margin;
    drawn.levels |= (beyond >= 0.0F ? 1U : 0U) << (8 * c);
    drawn.unsure |= (fabsf(beyond) <= error ? 1U : 0U) << c;
    if (kAverage) two.sums[variable.entry * two.sums_stride + c] += odds * q;
  }
  return drawn;
}

/// Any number of levels up to kMost, of kChains chains from number `first` on.
template <unsigned kMost, unsigned kChains, bool kAverage, class Offset>
POISE_BOTH Drawn draw_many(const ImageView& image, const ImageVariable& variable, const TwoChains<Offset>& two,
                           unsigned first) {
  // With few of them weights are registers, which have no numbers at run time: all loops go to the end.
  constexpr bool kFew = kMost <= kFewLevels;
  const unsigned levels = variable.levels;
  const unsigned end = kFew ? kMost : levels;
  float weights[kMost][kChains];
  POISE_UNROLL
  for (unsigned v = 0; v < end; ++v) {
    POISE_UNROLL
    for (unsigned c = 0; c < kChains; ++c) weights[v][c] = 0.0F;
  }
  for (std::uint32_t k = variable.first_term; k < variable.end_term; ++k) {
    const ImageTerm term = image.terms[k];
    std::uint32_t places[2];
    find_places(image, term, two, places);
    const std::size_t size = term.bits < 4 ? 16 : std::size_t{1} << term.bits;
    const float* table = image.tables + term.table;
    POISE_UNROLL
    for (unsigned v = 0; v < end; ++v) {
      if (kFew && v >= levels) continue;
      POISE_UNROLL
      for (unsigned c = 0; c < kChains; ++c) weights[v][c] += table[v * size + places[kChains == 2 ? c : first]];
    }
  }
  const std::uint64_t word = lane_word(two.key, two.scattered + variable.scatter);
  Drawn drawn{0, 0};
  POISE_UNROLL
  for (unsigned c = 0; c < kChains; ++c) {
    const unsigned chain = first + c;
    float largest = weights[0][c];
    POISE_UNROLL
    for (unsigned v = 1; v < end; ++v) {
      if (kFew && v >= levels) continue;
      largest = fmaxf(largest, weights[v][c]);
    }
    float total = 0.0F;
    POISE_UNROLL
    for (unsigned v = 0; v < end; ++v) {
      if (kFew && v >= levels) continue;
      weights[v][c] = exp_within(weights[v][c] - largest, 0.0F);
      total += weights[v][c];
    }
    const float random = uniform_of(word, chain) * total;
    const float scale = quotient(1.0F, total);
    float below = 0.0F;
    unsigned chosen = 0;
    unsigned unsure = 0;
    POISE_UNROLL
    for (unsigned v = 0; v < end; ++v) {
      if (kFew && v >= levels) continue;
      if (kAverage && v > 0) {
        two.sums[(variable.entry + v - 1) * two.sums_stride + chain] += weights[v][c] * scale;
      }
      if (v + 1 == levels) continue;
      below += weights[v][c];
      const float beyond = random - below;
      const float rest = total - below;
      const float error = fminf(below, rest) * variable.spread + total * variable.margin;
      chosen += beyond >= 0.0F ? 1U : 0U;
      unsure |= fabsf(beyond) <= error ? 1U : 0U;
    }
    drawn.levels |= chosen << (8 * chain);
    drawn.unsure |= unsure << chain;
  }
  return drawn;
}

/// Log weight of a level in units, and zeros among its factors.
struct ExactWeight {
  std::int64_t units;
  std::uint32_t zeros;
};

template <class Offset>
POISE_BOTH ExactWeight exact_weight(const ExactView& exact, std::uint32_t position, const TwoChains<Offset>& two,
                                    unsigned chain, unsigned level) {
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
    } else {
      weight.units += units;
    }
  }
  return weight;
}

/// The level of one chain by exact weights and all 53 digits, as LaneModel::thresholds has it.
template <class Offset>
POISE_BOTH std::uint32_t exact_level(const ExactView& exact, const ImageVariable& variable, std::uint32_t position,
                                     const TwoChains<Offset>& two, unsigned chain) {
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
    const bool more = weight.zeros == largest.zeros ? weight.units > largest.units : weight.zeros < largest.zeros;
    if (more) largest = weight;
  }
  const auto relative = [&](unsigned v) {
    const ExactWeight weight = weight_of(v);
    if (weight.zeros != largest.zeros) return 0.0;
    return exp(exact.unit * static_cast<double>(weight.units - largest.units));
  };
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

/// Counts the levels that both chains have now.
template <bool kMany, class Offset>
POISE_BOTH void count_both(const ImageVariable& variable, std::uint32_t levels, const TwoChains<Offset>& two) {
  const auto add = [&](std::uint32_t entry, std::uint32_t here) {
    std::uint16_t& count = word_at(two.counts, entry, two.stride);
    count = static_cast<std::uint16_t>(count + here);
  };
  if (!kMany || variable.levels == 2) {
    add(variable.entry, levels);
  } else {
    for (std::uint32_t v = 1; v < variable.levels; ++v) {
      add(variable.entry + v - 1, ((levels & 0xffU) == v ? 1U : 0U) | ((levels >> 8) == v ? 0x100U : 0U));
    }
  }
}

/// What floats say of both chains; `kMany` says whether there are variables with more than two levels, `kAverage`
/// whether conditionals are added to the sums.
template <bool kMany, bool kAverage, class Offset>
POISE_BOTH Drawn draw_both(const ImageView& image, const ImageVariable& variable, const TwoChains<Offset>& two) {
  if (!kMany || variable.levels == 2) return draw_two<kAverage>(image, variable, two);
  if (variable.levels <= kFewLevels) return draw_many<kFewLevels, 2, kAverage>(image, variable, two, 0);
  Drawn drawn{0, 0};
  for (unsigned c = 0; c < 2; ++c) {
    const Drawn one = draw_many<kMostLevels, 1, kAverage>(image, variable, two, c);
    drawn.levels |= one.levels;
    drawn.unsure |= one.unsure;
  }
  return drawn;
}

/// Updates the variable at a position in both chains. Where it returns true, `settle_both` is to follow, before any
/// variable of its blanket is updated: apart, as a call in the midst of an update would slow down all of them.
template <bool kMany, bool kAverage, class Offset>
[[nodiscard]] POISE_BOTH bool update_both(const ImageView& image, std::uint32_t position,
                                          const TwoChains<Offset>& two) {
  const ImageVariable variable = image.variables[position];
  const Drawn drawn = draw_both<kMany, kAverage>(image, variable, two);
  word_at(two.levels, position, two.stride) = static_cast<std::uint16_t>(drawn.levels);
  if (two.counts != nullptr) count_both<kMany>(variable, drawn.levels, two);
  return (drawn.unsure & two.chains) != 0;
}

/// Draws again, and asks integers where floats cannot tell. Nothing is added to sums of conditionals.
template <bool kMany, class Offset>
POISE_BOTH void settle_both(const ImageView& image, const ExactView& exact, std::uint32_t position,
                            const TwoChains<Offset>& two) {
  const ImageVariable variable = image.variables[position];
  std::uint16_t& levels = word_at(two.levels, position, two.stride);
  const std::uint32_t before = levels;
  const std::uint32_t unsure = draw_both<kMany, false>(image, variable, two).unsure & two.chains;
  for (unsigned c = 0; c < 2; ++c) {
    if ((unsure & 1U << c) == 0) continue;
    const std::uint32_t was = before >> (8 * c) & 0xffU;
    const std::uint32_t level = exact_level(exact, variable, position, two, c);
    if (level == was) continue;
    levels = static_cast<std::uint16_t>((levels & ~(0xffU << (8 * c))) | level << (8 * c));
    if (two.counts == nullptr) continue;
    const auto one = static_cast<std::uint16_t>(1U << (8 * c));
    if (was > 0) word_at(two.counts, variable.entry + was - 1, two.stride) -= one;
    if (level > 0) word_at(two.counts, variable.entry + level - 1, two.stride) += one;
  }
}

}  // namespace poise::cuda
