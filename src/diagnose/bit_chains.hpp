/// Chains of zeros and ones, a bit each: products at a lag are an AND and a count, exact and 64 draws at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace poise::diagnose_detail {

/// Chains of equal length. The bits past the end of a chain are zero, and one spare word follows each chain.
class BitChains {
 public:
  /// Forgets everything; all bits are zero. The memory is kept, for there may be a million variables to come.
  void reset(std::size_t chains, std::size_t length);

  /// Sets all bits of a chain: bit i is is_one(i).
  template <class IsOne>
  void fill(std::size_t chain, IsOne&& is_one) {
    for (std::size_t first = 0; first < length_; first += 64) {
      const std::size_t many = length_ - first < 64 ? length_ - first : 64;
      std::uint64_t word = 0;
      for (std::size_t i = 0; i < many; ++i) word |= static_cast<std::uint64_t>(is_one(first + i)) << i;
      words_[chain * stride_ + first / 64] = word;
    }
  }

  /// Bit i of a chain becomes (bytes[i] == value).
  void fill_equal(std::size_t chain, const std::int8_t* bytes, std::int8_t value);

  /// Draws 64 `word` and so on of a chain; none beyond its end is set.
  void set_word(std::size_t chain, std::size_t word, std::uint64_t bits) { words_[chain * stride_ + word] = bits; }

  /// Makes this the half-chains of `whole`, which must be another object: 2k and 2k + 1 are those of chain k.
  void take_halves(const BitChains& whole);

  [[nodiscard]] std::size_t chains() const { return ones_.size(); }
  [[nodiscard]] std::size_t length() const { return length_; }
  [[nodiscard]] std::uint64_t ones(std::size_t chain) const { return ones_[chain]; }
  [[nodiscard]] std::uint64_t ones() const;
  [[nodiscard]] bool bit(std::size_t chain, std::size_t i) const {
    return ((words_[chain * stride_ + i / 64] >> (i % 64)) & 1U) != 0;
  }
  [[nodiscard]] const std::uint64_t* words(std::size_t chain) const { return words_.data() + chain * stride_; }
  [[nodiscard]] std::size_t word_count() const { return stride_ - 1; }

  /// To be called after the chains were filled.
  void count();

  /// Ones of a chain up to each of these ends from the one before; ends ascend.
  void count(std::size_t chain, std::span<const std::size_t> ends, std::span<std::uint32_t> ones) const;

  /// Draws that differ from the draw before, over all chains.
  [[nodiscard]] std::uint64_t transitions() const;

 private:
  std::size_t length_ = 0;
  std::size_t stride_ = 1;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> ones_;
};

/// Sizes of half-chains. All are the same for every pair of values, and for their ranks: these are affine maps of each
/// other.
struct BitMixing {
  double r_hat;  ///< NaN where all bits are equal, as `ess`
  double ess;
  double chance;  ///< of so large an R-hat; 1 where it is not over its limit, for then it is not needed
};
[[nodiscard]] BitMixing mixing_of(const BitChains& chains);

}  // namespace poise::diagnose_detail
