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

#include "engines/cuda/lanes/lane_chains.hpp"

namespace poise::cuda {

/// What floats say: levels as bytes, and bits of the chains for which they cannot tell.
struct Drawn {
  std::uint32_t levels;
  std::uint32_t unsure;
};

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

/// Configurations of a term's other variables, of both chains.
template <class Offset>
POISE_BOTH void find_configurations(const ImageView& image, const ImageTerm& term, const TwoChains<Offset>& two,
                                    std::uint32_t (&configuration)[2]) {
  if (term.bits <= 16) {
    std::uint32_t both = 0;  // halves of a word: no carry leaves the lower one
    for (std::uint32_t k = term.first_others; k < term.end_others; ++k) {
      const ImageOthers others = image.others[k];
      const std::uint32_t first = levels_at(two, others.position[0]), second = levels_at(two, others.position[1]);
      both += in_halves(first) * others.factor[0] + in_halves(second) * others.factor[1];
    }
    configuration[0] = both & 0xffffU;
    configuration[1] = both >> 16;
    return;
  }
  configuration[0] = configuration[1] = 0;
  for (std::uint32_t k = term.first_others; k < term.end_others; ++k) {
    const ImageOthers others = image.others[k];
    for (unsigned j = 0; j < 2; ++j) {
      const std::uint32_t levels = levels_at(two, others.position[j]);
      configuration[0] += (levels & 0xffU) * others.factor[j];
      configuration[1] += (levels >> 8) * others.factor[j];
    }
  }
}

/// Adds a conditional probability of a chain to the sums.
template <class Two>
POISE_BOTH void add_average(const Two& two, std::uint32_t entry, unsigned chain, float probability) {
  if constexpr (Two::kHeated) {
    if ((two.cold >> chain & 1U) != 0) two.sums[entry * two.sums_stride] += probability;
  } else {
    two.sums[entry * two.sums_stride + chain] += probability;
  }
}

/// Where an update is.
struct UpdateAt {
  std::uint32_t position;
  ImageVariable variable;
};

/// One level or the other: q is the probability of level 0, and level 1 it is where the random number is not below.
template <bool kAverage, class Two>
POISE_BOTH Drawn draw_two(const ImageView& image, const UpdateAt& at, const Two& two) {
  const ImageVariable& variable = at.variable;
  float sum[2] = {variable.base, variable.base};
  [[maybe_unused]] float zeros[2] = {0.0F, 0.0F};
  if constexpr (Two::kHeated) {
    if (image.zeros != nullptr) zeros[0] = zeros[1] = image.zeros[at.position];
  }
  for (std::uint32_t k = variable.first_pair; k < variable.end_pair; ++k) {
    const ImagePair pair = image.pairs[k];
    const std::uint32_t levels = levels_at(two, pair.position);
    sum[0] += (levels & 0xffU) != 0 ? pair.log_odds[1] : pair.log_odds[0];
    sum[1] += (levels & 0xff00U) != 0 ? pair.log_odds[1] : pair.log_odds[0];
  }
  for (std::uint32_t k = variable.first_term; k < variable.end_term; ++k) {
    const ImageTerm term = image.terms[k];
    std::uint32_t configuration[2];
    find_configurations(image, term, two, configuration);
    sum[0] += image.tables[term.table + configuration[0]];
    sum[1] += image.tables[term.table + configuration[1]];
    if constexpr (Two::kHeated) {
      const std::uint32_t zero_table = image.zeros != nullptr ? image.zero_tables[k] : 0;
      if (zero_table == 0) continue;
      zeros[0] += image.tables[zero_table + configuration[0]];
      zeros[1] += image.tables[zero_table + configuration[1]];
    }
  }
  if constexpr (Two::kHeated) {
    for (unsigned c = 0; c < 2; ++c) sum[c] = sum[c] * two.heat[c].beta + zeros[c] * two.heat[c].log_zero;
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
    if (kAverage) add_average(two, variable.entry, c, odds * q);
  }
  return drawn;
}

/// Any number of levels up to kMost, of kChains chains from number `first` on.
template <unsigned kMost, unsigned kChains, bool kAverage, class Two>
POISE_BOTH Drawn draw_many(const ImageView& image, const ImageVariable& variable, const Two& two, unsigned first) {
  // With few of them weights are registers, which have no numbers at run time: all loops go to the end.
  constexpr bool kFew = kMost <= kFewLevels;
  const unsigned levels = variable.levels;
  const unsigned end = kFew ? kMost : levels;
  float weights[kMost][kChains];
  [[maybe_unused]] float zeros[Two::kHeated ? kMost : 1][kChains];
  POISE_UNROLL
  for (unsigned v = 0; v < end; ++v) {
    POISE_UNROLL
    for (unsigned c = 0; c < kChains; ++c) {
      weights[v][c] = 0.0F;
      if constexpr (Two::kHeated) zeros[v][c] = 0.0F;
    }
  }
  for (std::uint32_t k = variable.first_term; k < variable.end_term; ++k) {
    const ImageTerm term = image.terms[k];
    std::uint32_t configuration[2];
    find_configurations(image, term, two, configuration);
    const std::size_t size = term.bits < 4 ? 16 : std::size_t{1} << term.bits;
    const float* table = image.tables + term.table;
    POISE_UNROLL
    for (unsigned v = 0; v < end; ++v) {
      if (kFew && v >= levels) continue;
      POISE_UNROLL
      for (unsigned c = 0; c < kChains; ++c) weights[v][c] += table[v * size + configuration[kChains == 2 ? c : first]];
    }
    if constexpr (Two::kHeated) {
      const std::uint32_t zero_table = image.zeros != nullptr ? image.zero_tables[k] : 0;
      if (zero_table == 0) continue;
      POISE_UNROLL
      for (unsigned v = 0; v < end; ++v) {
        if (kFew && v >= levels) continue;
        POISE_UNROLL
        for (unsigned c = 0; c < kChains; ++c) {
          zeros[v][c] += image.tables[zero_table + v * size + configuration[kChains == 2 ? c : first]];
        }
      }
    }
  }
  if constexpr (Two::kHeated) {
    POISE_UNROLL
    for (unsigned v = 0; v < end; ++v) {
      POISE_UNROLL
      for (unsigned c = 0; c < kChains; ++c) {
        const RungHeat heat = two.heat[kChains == 2 ? c : first];
        weights[v][c] = weights[v][c] * heat.beta + zeros[v][c] * heat.log_zero;
      }
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
      if (kAverage && v > 0) add_average(two, variable.entry + v - 1, chain, weights[v][c] * scale);
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
template <bool kMany, bool kAverage, class Two>
POISE_BOTH Drawn draw_both(const ImageView& image, const UpdateAt& at, const Two& two) {
  const ImageVariable& variable = at.variable;
  if (!kMany || variable.levels == 2) return draw_two<kAverage>(image, at, two);
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
template <bool kMany, bool kAverage, class Two>
[[nodiscard]] POISE_BOTH bool update_both(const ImageView& image, std::uint32_t position, const Two& two) {
  const UpdateAt at{position, image.variables[position]};
  const Drawn drawn = draw_both<kMany, kAverage>(image, at, two);
  word_at(two.levels, position, two.stride) = static_cast<std::uint16_t>(drawn.levels);
  if (two.counts != nullptr) count_both<kMany>(at.variable, drawn.levels, two);
  return (drawn.unsure & two.chains) != 0;
}

/// Draws again, and asks integers where floats cannot tell. Nothing is added to sums of conditionals.
template <bool kMany, class Two>
POISE_BOTH void settle_both(const ImageView& image, const ExactView& exact, std::uint32_t position, const Two& two) {
  const UpdateAt at{position, image.variables[position]};
  const ImageVariable& variable = at.variable;
  std::uint16_t& levels = word_at(two.levels, position, two.stride);
  const std::uint32_t before = levels;
  const std::uint32_t unsure = draw_both<kMany, false>(image, at, two).unsure & two.chains;
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
