/// Sums over the variables of a block of chains that are bits, one for each chain.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engines/cpu/bits/bit_vector.hpp"
#include <poise/types.hpp>

namespace poise {

/// Bits of a block that are summed: those at one position each, or whether those at two positions differ. Kept as
/// stretches in which both positions go up by one, so that several are taken at a time.
struct BitTerms {
  static constexpr Index kNone = ~Index{0};
  struct Stretch {
    Index first;
    Index second;  ///< kNone: the bits at `first` themselves
    Index count;
  };
  std::vector<Stretch> stretches;
  std::size_t count = 0;

  /// The bits at positions 0 .. positions - 1.
  [[nodiscard]] static BitTerms all(Index positions);
  /// Adds one term, to the last stretch if it goes on there.
  void add(Index first, Index second);
};

/// What sums are taken of: [position][word], and the lanes that are chains.
struct BitView {
  const std::uint64_t* state;
  std::size_t words;
  std::size_t first_lane;
  std::size_t lanes;
};

/// out[k] is how many of the terms are set in lane first_lane + k.
void count_terms(const BitView& view, const BitTerms& terms, std::span<std::int64_t> out);
/// The same with weights, in the order of the terms: the sum of those of the terms that are set.
void weigh_terms(const BitView& view, const BitTerms& terms, std::span<const std::int64_t> weights,
                 std::span<std::int64_t> out);
/// At how many positions a lane differs from `reference`, which has a word for each position, all ones or all zeros.
void count_differences(const BitView& view, std::span<const std::uint64_t> reference, std::span<std::int64_t> out);

}  // namespace poise
