/// A model laid out for Gibbs with chains across lanes: each variable with the terms of its conditional.
///
/// The log weight of a level is a sum of terms, each looked up in a table by the configuration of a few other
/// variables. Lanes add them up in floats and take a level wherever floats can tell which one it is; the rest, one
/// update in a hundred thousand or so, is asked of the model itself. So the law is that of the exact weights, however
/// coarse the tables are, provided that the bounds on their errors hold: `spread` and `margin`.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include <poise/types.hpp>

namespace poise {

/// Levels of one chain, wherever they are kept.
class LaneLevels {
 public:
  LaneLevels(const Value* first, std::size_t stride, const Index* position)
      : first_(first), stride_(stride), position_(position) {}
  [[nodiscard]] Value operator[](Index variable) const { return first_[position_[variable] * stride_]; }

 private:
  const Value* first_;
  std::size_t stride_;
  const Index* position_;
};

/// One term of a conditional: a table over the levels of the variable and of some others.
struct LaneTerm {
  std::span<const Index> others;
  /// Terms with the same key have the same table, if their variables have the same numbers of levels.
  std::uint64_t key;
  std::uint64_t number;  ///< by which its source knows it
};

/// How a lane is heated: log weights times beta, and `log_zero` for every zero among their factors. The plain
/// distribution is what the defaults say.
struct LaneHeat {
  double beta = 1.0;
  double log_zero = -std::numeric_limits<double>::infinity();
};

/// What a layout is made from.
struct LaneSource {
  std::vector<Index> levels;  ///< of each variable; 1 where there is nothing to sample
  /// Visits the terms of a variable; those of a variable with one level are never asked for.
  std::function<void(Index variable, const std::function<void(const LaneTerm&)>& visit)> terms;
  /// log of an entry of a term of a variable, minus infinity for a zero; `levels` are those of the term's others.
  std::function<double(Index variable, const LaneTerm& term, std::span<const Value> levels, Value own)> entry;
  /// log of the smallest entry of a term's table that is no zero: what zeros count as, beside `log_zero`, when heated.
  std::function<double(const LaneTerm& term)> lowest;
  /// log weights of all levels of a variable given the others, the largest 0; minus infinity where one is impossible.
  std::function<void(Index variable, const LaneLevels& levels, const LaneHeat& heat, std::span<double> log_weights)>
      exact;
};

/// Whether lanes of a model can be heated: zeros are then counted apart from everything else.
enum class LaneZeros { hard, soft };

class LaneModel {
 public:
  /// Terms that an update adds up, on average. Above this many it is better to keep sums up to date than to add them
  /// anew, and a layout is not worth its while.
  static constexpr double kMostTerms = 32.0;
  /// Entries of all tables.
  static constexpr double kMostEntries = double{1 << 27};
  static constexpr Index kMostLevels = 128;
  /// Sweeps that a byte can count, and those whose conditional probabilities are summed in floats before the sum is
  /// added to one of doubles. Each addition rounds by at most 2^-24 of `kMostSummed`, so an average is off by 1e-6.
  static constexpr std::uint64_t kMostCounted = 255;
  static constexpr std::uint64_t kMostSummed = 17;
  static_assert(kMostCounted % kMostSummed == 0);
  /// Stands for log 0: far below any sum of others, and several of them are still finite.
  static constexpr float kZero = -1e30F;

  struct Variable {  // in the order of updates, and one more at the end
    Index variable;
    Index levels;
    Index entry;       // number of its level 1 among all levels above 0
    Index first_pair;  // and up to the next one's
    Index first_term;
    float base;    // of two levels: log odds without the others
    float zeros;   // zeros of level 1 less those of level 0, without the others; soft ones only
    float spread;  // relative error of the odds of any two sets of levels, at most
    float margin;  // error of a probability beside it
  };
  /// A factor of two variables with two levels each.
  struct Pair {
    Index position;
    float log_odds[2];  // with the other at level 0, and at level 1
  };
  struct Term {
    std::size_t table;  // first entry; one table of 2^bits entries, or 16, for each level, or one of log odds
    std::size_t zeros;  // the same for the numbers of soft zeros; 0 where there are none
    Index first_other;  // and up to the next term's
    unsigned bits;
  };
  struct Other {
    Index position;
    unsigned bits;  // that its level takes
  };

  /// Whether a layout of this model fits and is worth its while.
  [[nodiscard]] static bool fits(const LaneSource& source);
  explicit LaneModel(LaneSource source, LaneZeros zeros = LaneZeros::hard);
  /// log_zero is not lower than this where beta is below 1.
  static constexpr double kLowestLogZero = -60.0;

  [[nodiscard]] Index num_variables() const { return static_cast<Index>(position_.size()); }
  [[nodiscard]] Index num_entries() const { return variables_.back().entry; }
  /// Where a variable stands: colour by colour; those of one level come last.
  [[nodiscard]] Index position(Index variable) const { return position_[variable]; }
  [[nodiscard]] const std::vector<Index>& positions() const { return position_; }
  /// The first position of each colour, and the end of the last: those of one colour may be updated in any order.
  [[nodiscard]] const std::vector<Index>& colours() const { return colours_; }
  [[nodiscard]] const std::vector<Variable>& variables() const { return variables_; }
  [[nodiscard]] const std::vector<Pair>& pairs() const { return pairs_; }
  [[nodiscard]] const std::vector<Term>& terms() const { return terms_; }
  [[nodiscard]] const std::vector<Other>& others() const { return others_; }
  [[nodiscard]] const float* tables() const { return lines_.empty() ? nullptr : lines_.front().entries; }
  [[nodiscard]] std::size_t table_entries() const { return lines_.size() * 16; }
  /// Number of a variable's level 1 among all levels above 0, in the order of variables.
  [[nodiscard]] const std::vector<Index>& entries() const { return entry_; }

  /// What floats add to the error of an averaged conditional probability at most, by entry in the order of variables.
  [[nodiscard]] std::vector<double> rounding() const;

  /// Probabilities of not being above a level, in units of 2^-53, all levels but the last: a variable is above where a
  /// random integer is not below.
  void thresholds(Index variable, const LaneLevels& levels, const LaneHeat& heat, std::span<std::uint64_t> out) const;

 private:
  class Builder;
  struct alignas(64) Line {
    float entries[16];
  };

  LaneSource source_;
  LaneZeros zeros_;
  std::vector<Index> position_;
  std::vector<Index> colours_;
  std::vector<Index> entry_;
  std::vector<Variable> variables_;
  std::vector<Pair> pairs_;
  std::vector<Term> terms_;
  std::vector<Other> others_;
  std::vector<Line> lines_;
};

}  // namespace poise
