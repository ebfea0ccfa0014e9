/// Sums over the variables of chains that are bits of words, and counts of how often each variable is up.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <poise/types.hpp>
#include "engines/cpu/bits/bit_vector.hpp"

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
  /// Adds one term, to the last stretch if it continues it.
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

/// How often each chain of a block had each variable up. Many chains are counted in planes of bits that carry into each
/// other, few of them in bytes; both are added to larger numbers before they overflow.
class UpCounts {
 public:
  /// Chains are the lanes from `first_lane` on.
  UpCounts(Index positions, std::size_t words, std::size_t first_lane, std::size_t lanes, bool in_bytes)
      : positions_(positions), words_(words), first_lane_(first_lane), lanes_(lanes), in_bytes_(in_bytes) {}

  /// Starts anew.
  void reset();
  /// Adds a state.
  void add(const std::uint64_t* state);
  /// Gives the counts of one chain, position by position.
  void collect(std::size_t lane, std::span<std::uint64_t> out) const;
  /// Sets what was counted of one chain; other threads may do the same with other chains.
  void set(std::size_t lane, std::span<const std::uint64_t> counts);

 private:
  static constexpr unsigned kLevels = 8;
  static constexpr std::uint64_t kMost = (1U << kLevels) - 1;  // states until planes or bytes are full

  [[nodiscard]] std::uint64_t recent(std::size_t position, std::size_t lane) const;
  [[nodiscard]] std::uint64_t planes_of_eight(std::size_t position, std::size_t lane) const;
  void spill();
  /// Makes room in what is spilled for `states` more.
  void make_room(std::uint64_t states);

  std::size_t positions_;
  std::size_t words_;
  std::size_t first_lane_;
  std::size_t lanes_;
  bool in_bytes_;
  // Planes [level] count 2^level each; `pending` holds the carry into a level until there are two of them.
  std::array<AlignedWords, kLevels> planes_;
  std::array<AlignedWords, kLevels> pending_;
  std::array<AlignedWords, kLevels> bytes_;  // of eight lanes each
  std::uint64_t states_ = 0;                 // since they were empty
  std::vector<std::uint32_t> spilled_;       // [position][lane], of what was full
  std::uint64_t spilled_states_ = 0;         // none of them is larger
  std::vector<std::uint64_t> earlier_;       // the same, before those would have overflowed
};

}  // namespace poise
