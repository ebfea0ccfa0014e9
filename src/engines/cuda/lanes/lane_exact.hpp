/// Updates that floats cannot tell, settled by integers as on the CPU: on a device, and on the host for tests.
#pragma once

#include <cmath>

#include "engines/cuda/lanes/lane_chains.hpp"

namespace poise::cuda {

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
