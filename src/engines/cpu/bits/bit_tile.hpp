/// Chains as bits: a tile of words that one thread moves on, sweep after sweep of Gibbs.
///
/// A chain is up where a random integer of 64 binary digits, its own, is below P(up | blanket). The integers are drawn
/// and compared digit by digit, from the highest down, for all chains of the tile at once: half of the chains are
/// decided by each digit, so a tile of 512 needs ten. The law is exact to 2^-64.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <poise/extend/engines/engine.hpp>
#include "engines/common/keyed_words.hpp"
#include "engines/cpu/bits/bit_sums.hpp"
#include "engines/cpu/bits/bit_tables.hpp"

namespace poise {

/// A sweep of a few chains: vectors have eight variables in their lanes, and the chains take turns.
struct FewSweep {
  const BitTables::Run* run;
  std::uint64_t* state;        // by position
  std::uint64_t first_update;  // number of the update of variable 0
  std::uint64_t chains;        // bits that are chains
  // Keys of the four times sixteen chains of a word.
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

/// What was counted of one chain.
struct BitTotals {
  std::vector<std::uint64_t> counts;  ///< sweeps at which each variable was up

  template <class A>
  void archive(A& archive) {
    archive(counts);
  }
};

class BitTile {
 public:
  using Totals = BitTotals;
  static constexpr std::size_t kMostWords = 8;
  static constexpr std::size_t kFew = 16;  ///< chains, up to which variables go in the lanes instead

  /// The chains first_chain + group.first and so on; numbers are those of the run.
  BitTile(std::shared_ptr<const BitTables> tables, ChainGroup group, std::uint64_t seed, std::uint64_t first_chain);

  [[nodiscard]] ChainGroup group() const { return group_; }
  [[nodiscard]] std::size_t words() const { return words_; }
  [[nodiscard]] std::uint64_t sweeps() const { return sweeps_; }
  [[nodiscard]] TileProgress progress() const { return {sweeps_, counting_ ? 1U : 0U, 0}; }
  /// Counts start anew.
  void set_progress(const TileProgress& progress);
  /// [position][word], one position more than there are variables, which is 0.
  [[nodiscard]] const std::uint64_t* state() const { return state_.data(); }

  /// Counts levels once `reset_counts` was called.
  void sweep(std::uint64_t sweeps);
  void reset_counts();
  [[nodiscard]] bool counts() const { return counting_; }

  // For one chain of the run; other threads may handle other chains at the same time.
  void set_levels(std::size_t chain, std::span<const Value> levels);
  void get_levels(std::size_t chain, std::span<Value> levels) const;
  void set_totals(std::size_t chain, const BitTotals& totals);
  [[nodiscard]] BitTotals get_totals(std::size_t chain) const;
  void get_counts(std::size_t chain, std::span<std::uint64_t> counts) const;

  /// All levels of the chains of the group, chain after chain.
  void get_all_levels(std::span<Value> levels) const;
  /// The same as bits, every chain from a byte of its own on.
  void get_all_bits(std::span<std::uint8_t> bits) const;

  /// Where a chain is.
  struct Lane {
    std::size_t word;
    unsigned bit;
  };
  [[nodiscard]] std::size_t lane_number(std::size_t chain) const { return lane(chain).word * 64 + lane(chain).bit; }
  [[nodiscard]] Lane lane(std::size_t chain) const {
    const std::uint64_t number = first_chain_ + chain;
    return {static_cast<std::size_t>(number / 64 - first_word_), static_cast<unsigned>(number % 64)};
  }

 private:
  [[nodiscard]] bool is_few() const { return words_ == 1 && group_.count <= kFew; }
  [[nodiscard]] const std::uint64_t& word_of(std::size_t variable, std::size_t word) const {
    return state_.data()[tables_->position(static_cast<Index>(variable)) * words_ + word];
  }
  [[nodiscard]] std::uint64_t& word_of(std::size_t variable, std::size_t word) {
    return state_.data()[tables_->position(static_cast<Index>(variable)) * words_ + word];
  }

  template <unsigned W>
  void sweep_words();
  template <unsigned W, unsigned size>
  void sweep_run(const BitTables::Run& run);
  void sweep_few(const BitTables::Run& run);

  std::shared_ptr<const BitTables> tables_;
  ChainGroup group_;
  std::uint64_t first_chain_;
  std::uint64_t first_word_;
  std::size_t words_ = 1;  // one, two, four or eight
  // Keys of the four times sixteen chains of a word, [sixteen][word].
  using Keys = std::array<std::array<std::uint64_t, kMostWords>, 4>;
  Keys first_keys_{};
  Keys second_keys_{};
  std::array<std::uint64_t, kMostWords> chains_{};  // bits that are chains
  AlignedWords state_;
  UpCounts counts_;
  bool counting_ = false;
  std::uint64_t sweeps_ = 0;
};

}  // namespace poise
