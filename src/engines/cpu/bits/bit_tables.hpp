/// Gibbs conditionals of binary variables with small blankets, as truth tables.
///
/// P(up | blanket) is one number for each configuration of the blanket, so each of its binary digits is a Boolean
/// function of the neighbours: a table of 2^(size of the blanket) bits. With chains as bits of words, it is evaluated
/// for all of them at once.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include <poise/types.hpp>
#include "engines/cpu/bits/bit_vector.hpp"

namespace poise {

/// What tables are made from.
struct BitModel {
  Index variables = 0;
  /// The variables that a variable's conditional depends on, without repetition.
  std::function<std::vector<Index>(Index variable)> blanket;
  /// log P(level 1 | blanket) / P(level 0 | blanket), infinite where one of them is impossible. Bit k of the
  /// configuration is the level of the k-th variable of the blanket.
  std::function<double(Index variable, unsigned configuration)> log_odds;
  bool adds_up = false;  ///< whether log odds are a sum over the neighbours that are up
};

class BitTables {
 public:
  static constexpr unsigned kLeast = 4;  ///< smaller blankets are filled up with a variable that is always 0
  static constexpr unsigned kMost = 6;
  static constexpr unsigned kDigits = 32;  ///< that are tabled: one update in billions needs more

  /// Odds as products, for a few chains: P(up) / P(down) is `base` times the factors of the neighbours that are up.
  struct Odds {
    bool are_products = true;     ///< to within kOddsError, and far from overflow
    std::vector<double> base;     ///< of each variable
    std::vector<double> factors;  ///< [neighbour][variable], or one number where all are alike
  };
  static constexpr double kOddsError = 0x1p-28;  ///< relative

  /// Variables of one colour with blankets of one size; they do not depend on each other, and stand side by side.
  struct Run {
    unsigned size;          ///< of the blankets
    std::size_t count = 0;  ///< variables; what follows has room for eight at least, the last one repeated
    Index first = 0;        ///< position of the first one
    std::vector<Index> variable;
    std::vector<Index> blanket;  ///< positions, `size` for each variable; the last of all is always 0
    /// For each eight variables (those of the last eight, where fewer are left) and each of their neighbours: where the
    /// eight of them stand, if it is side by side, else kApart.
    std::vector<Index> side_by_side;
    Odds odds;
    // Once they are made, kDigits for each variable; bit b of a digit is that of P(up | configuration b).
    mutable std::vector<std::uint16_t> digits4;  ///< of blankets of size 4
    mutable std::vector<std::uint32_t> digits5;
    mutable std::vector<std::uint64_t> digits6;
  };

  [[nodiscard]] static bool fits(const BitModel& model);
  explicit BitTables(BitModel model);
  /// Makes the digits, which many chains need; may be called more than once, by any thread.
  void make_digits() const;

  static constexpr Index kApart = ~Index{0};

  [[nodiscard]] Index variables() const { return model_.variables; }
  /// Where a variable stands: colour by colour. Position `variables` is the one that is always 0.
  [[nodiscard]] Index position(Index variable) const { return position_[variable]; }
  [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }

  /// P(up | configuration) in units of 2^-64; all ones where down is impossible. A variable is up where a random
  /// integer is below it.
  [[nodiscard]] std::uint64_t threshold(Index variable, unsigned configuration) const;
  /// The same of all configurations of a blanket that is filled up: 2^size of them.
  void thresholds(Index variable, std::span<std::uint64_t> out) const;
  [[nodiscard]] std::vector<Index> blanket(Index variable) const { return model_.blanket(variable); }

 private:
  void add(Run& run, Index variable) const;
  void add_odds(Run& run, Index variable, unsigned size) const;

  BitModel model_;
  mutable std::once_flag digits_made_;
  std::vector<Run> runs_;
  std::vector<Index> position_;
};

/// Digits `first` to `first` + 7 of numbers in units of 2^-64, the highest first: bit c of a digit is that of number c.
template <class Digit>
[[nodiscard]] std::array<Digit, 8> eight_digits(std::span<const std::uint64_t> numbers, unsigned first) {
  std::array<Digit, 8> digits{};
  for (std::size_t c = 0; c < numbers.size(); c += 8) {
    std::uint64_t square = 0;
    for (unsigned k = 0; k < 8; ++k) square |= (numbers[c + k] >> (56 - first) & 0xff) << (8 * k);
    square = transpose8(square);
    for (unsigned k = 0; k < 8; ++k) {
      digits[k] = static_cast<Digit>(digits[k] | static_cast<Digit>(square >> (8 * (7 - k)) & 0xff) << c);
    }
  }
  return digits;
}

}  // namespace poise
