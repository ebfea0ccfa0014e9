/// The inner loops of exact inference: the product of the tables that meet in a bucket, a batch of rows at a time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <poise/types.hpp>

namespace poise::exact {

/// Rows are held in multiples of eight, so that loops over eight numbers need no remainder.
constexpr std::size_t padded(std::size_t length) { return (length + 7) / 8 * 8; }

/// What a variable of the bucket, by its place in it, contributes to the place in a table: level times stride.
struct Digit {
  Index member;
  std::size_t stride;
};

/// A table that is multiplied into a bucket: logarithms. Where it is a message, probabilities may be handed back to it.
struct Source {
  const double* table;
  std::span<const Digit> digits;  ///< those of variables that are summed out, then the rest, in the bucket's order
  double* probabilities = nullptr;
};

/// Places of all combinations of levels, the last variable fastest. Gives their number.
std::size_t combine(std::span<const Index> levels, std::span<const std::size_t> strides, std::ptrdiff_t* places);

/// The variables of a bucket: summed out, outer, and those that make up a row.
struct Shape {
  std::span<const Index> levels;
  std::size_t summed;
  std::size_t in_row;
};

/// An outer variable of a bucket that stays at one level.
struct Fixed {
  Index member;
  Index level;
};

/// The table of a bucket in chunks, one for each combination of levels of some of its outer variables.
class Chunks {
 public:
  Chunks(const Shape& shape, std::span<const Index> members) : shape_(shape), members_(members) {
    for (const Index member : members) count_ *= shape.levels[member];
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::vector<Fixed> at(std::size_t chunk) const {
    std::vector<Fixed> fixed;
    for (const Index member : members_) {
      fixed.push_back({member, static_cast<Index>(chunk % shape_.levels[member])});
      chunk /= shape_.levels[member];
    }
    return fixed;
  }

 private:
  Shape shape_;
  std::span<const Index> members_;
  std::size_t count_ = 1;
};

/// One pass over the table of a bucket, or over a chunk of it. The outer variables go through their combinations; for
/// each there is a batch, a row for every group (combination of variables summed out).
///
///   pass.prepare(shape, sources);
///   for (bool more = pass.open(sources); more; more = pass.next()) pass.collect(message + pass.offset());
class Pass {
 public:
  /// What all chunks have in common.
  void prepare(const Shape& shape, std::span<const Source> sources);
  /// The sources that it was prepared with; only where their probabilities lie may differ. Always true, for the loop:
  /// there is a first batch.
  bool open(std::span<const Source> sources, std::span<const Fixed> fixed = {});
  bool next();

  [[nodiscard]] std::size_t row() const { return row_; }
  [[nodiscard]] std::size_t groups() const { return groups_; }
  /// Of the batch in the message.
  [[nodiscard]] std::size_t offset() const { return offset_; }

  /// Sums the groups of this batch out: the logarithm of what is left, for each place in the row.
  void collect(double* message);
  /// Multiplies the batch, divided by what `collect` gave (`message` + `scale`), by the probabilities of its row, adds
  /// the result to the probabilities of all sources that have some, and its sum over the row to `totals`, by group.
  void hand_out(const double* message, double scale, const double* probabilities, double* totals);

  /// How a source lies in a row.
  struct Run {
    enum class Kind : unsigned char {
      constant,    ///< each run is one value, repeated
      contiguous,  ///< each run lies together
      scattered,   ///< every value has a place of its own
    };
    Kind kind;
    std::size_t length;            ///< of each run, in row
    std::size_t count;             ///< of runs
    const std::ptrdiff_t* places;  ///< of each run
  };
  struct Term {
    const double* from;              ///< the table, moved to the levels of the outer variables
    double* to;                      ///< the same place among the probabilities, or null
    const std::ptrdiff_t* by_group;  ///< places of the groups
    Run run;
  };

 private:
  void describe(std::span<const Source> sources, std::size_t source);
  void walk(std::span<const Fixed> fixed);
  void move(std::size_t outer, std::ptrdiff_t times);
  [[nodiscard]] std::span<const Term> outer_terms() const { return {terms_.data(), outer_terms_}; }

  std::size_t groups_ = 0;
  std::size_t row_ = 0;
  std::size_t stride_ = 0;  ///< the row, padded
  std::size_t offset_ = 0;
  std::size_t outer_terms_ = 0;  ///< terms that depend on outer variables; they come first

  std::vector<Term> terms_;
  std::vector<std::size_t> source_of_;  ///< the term
  std::vector<std::ptrdiff_t> by_group_;
  std::vector<std::ptrdiff_t> places_;
  std::vector<std::size_t> strides_;         ///< of the variables of one source
  std::vector<std::size_t> outer_strides_;   ///< by outer variable, then term
  std::vector<std::size_t> offset_strides_;  ///< in the message, by outer variable
  std::vector<Index> outer_levels_;          ///< how many levels
  std::vector<Index> outer_now_;             ///< and which one
  Shape shape_{};
  std::vector<double> base_;  ///< rows of the terms that no outer variable changes
  std::vector<double> rows_;
  std::vector<double> row_message_;
  std::vector<double> row_probabilities_;
};

}  // namespace poise::exact
