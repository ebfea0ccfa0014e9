/// Sweeps of a few chains that are bits: vectors have eight variables in their lanes, and the chains take turns.
#pragma once

#include <array>
#include <cstdint>

#include "engines/cpu/bits/bit_tables.hpp"
#include "engines/common/keyed_words.hpp"

namespace poise {

struct FewSweep {
  const BitTables::Run* run;
  std::uint64_t* state;        // by position
  std::uint64_t first_update;  // number of the update of variable 0
  std::uint64_t chains;        // bits that are chains
  // Of the four times sixteen chains of a word.
  std::array<std::uint64_t, 4> first_keys;
  std::array<std::uint64_t, 4> second_keys;

  const BitTables* tables;
  /// The bits of `undecided` at which variable k of the run is up, by all digits.
  std::uint64_t (*decide)(const FewSweep& sweep, std::size_t k, std::uint64_t undecided);
};

/// Sixteen words, a power of two, have the 64 digits of an update.
constexpr int kWordsOfUpdate = 4;

/// Where the digits of update number `update` begin.
POISE_INLINE std::uint64_t scatter(std::uint64_t update) { return (update << kWordsOfUpdate) * kWordStep; }

/// One look at every variable of a run whose odds are products.
void sweep_eights(const FewSweep& sweep);
#if defined(__x86_64__)
void sweep_eights_avx512(const FewSweep& sweep);
#endif

}  // namespace poise
