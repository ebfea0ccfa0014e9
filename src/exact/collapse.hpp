/// Variables summed or maximised out of a network while tables stay small: what is left to sample or to search, and
/// the way back.
///
/// Summing x_i out of the product of the factors that hold it makes one factor of the variables beside it; what is left
/// has the marginal distribution of the other variables, and P(x_i | others) is a table that is kept. Given a state of
/// what is left, the core, the removed variables are drawn in the reverse order, each from its table.
///
/// Tables are made from logarithms, so products of any range neither vanish nor overflow: a state of the core has
/// probability zero only where the network says so. A table of the core that spans more than the range of doubles
/// stands there as several factors of one scope, roots of it that share a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/network.hpp>
#include "exact/reduction.hpp"

namespace poise {

struct CollapseOptions {
  /// Entries of the table of a variable and its neighbours, as it is summed out. (A variable in one factor alone goes
  /// whatever its table: that one is there already.) More removes more variables, but leaves larger tables.
  double most_entries = 4096;
  /// Bytes that the conditional probabilities of removed variables may take in all; removing ends where they would not
  /// fit.
  double memory_limit = 1073741824.0;
  /// Orders that are tried at most, some choices left to chance: the one that leaves the fewest configurations is
  /// taken. Few on large networks: the search takes some tenths of a second, whatever this is. 0 is the same as 1.
  std::size_t trials = 200;
  /// With Reduction::max the core has the largest product over the removed variables where it would have the sum, and
  /// `draw` gives levels of removed variables that reach it. log Z then stands for the logarithm of the largest
  /// product.
  Reduction reduction = Reduction::sum;
};

class Collapse {
 public:
  /// `network` may hold evidence and zeros; it is not needed afterwards. A variable that zeros leave one level of, as
  /// far as looking at one factor at a time can tell, is removed like an observed one. Throws InputError where a
  /// variable has more levels than sampling takes, and where no state has positive probability, if that is noticed: a
  /// product of factors is zero everywhere.
  explicit Collapse(const Network& network, const CollapseOptions& options = {});

  /// What is left: its variables are numbered anew, none is observed or without factors, no factor is a constant or
  /// lies inside another, unless tables are shared. The largest entry of a table is 1. There may be no variable at all.
  [[nodiscard]] const Network& core() const { return core_; }
  /// The variable of the network for each variable of the core, which has the same levels.
  [[nodiscard]] const std::vector<Index>& kept() const { return kept_; }
  /// log Z of the network less log Z of the core, which is 0 where it has no variables.
  [[nodiscard]] double log_constant() const { return log_constant_; }
  /// Variables summed out. Observed ones are not among them, nor those of one level.
  [[nodiscard]] Index num_removed() const { return static_cast<Index>(steps_.size() - 1); }
  /// Bytes that the conditional probabilities of removed variables take.
  [[nodiscard]] double bytes() const;

  /// Levels of all variables of the network, drawn given those of the core, which must have positive probability:
  /// removed ones backward from their conditionals, observed ones at their level. Takes num_removed() numbers from
  /// `rng`. `sums`, where not empty, gets added P(variable at level | what was drawn before it) for all removed
  /// variables; its entries are pairs of a variable and a level above 0, in the order of MarkovNetwork's moves, in
  /// which observed variables have none. Any number of threads may draw at the same time.
  void draw(std::span<const Value> core, Rng& rng, std::span<Value> levels, std::span<double> sums) const;

  /// log P(removed variables | core) at a state of all variables, as `draw` has it.
  [[nodiscard]] double log_conditional(std::span<const Value> levels) const;

 private:
  class Builder;

  /// A removed variable, and where its conditional probabilities are.
  struct Step {
    Index variable;
    Index choices;           ///< levels less one: cumulative probabilities in a row
    std::size_t first_term;  ///< and up to the next step's
    std::size_t first_row;
    std::size_t first_sum;
  };
  /// A variable that a conditional depends on, and how far rows of its levels lie apart.
  struct Term {
    Index variable;
    std::uint32_t stride;
  };

  [[nodiscard]] POISE_INLINE const double* row_of(const Step& step, const Value* levels) const {
    const double* row = rows_.data() + step.first_row;
    const Term* const end = terms_.data() + (&step + 1)->first_term;
    for (const Term* term = terms_.data() + step.first_term; term != end; ++term) {
      row += std::size_t{term->stride} * levels[term->variable];
    }
    return row;
  }

  Network core_;
  std::vector<Index> kept_;
  double log_constant_ = 0.0;
  std::vector<Value> fixed_;  // the level of observed variables, 0 elsewhere
  std::vector<Step> steps_;   // removed variables in the order of removal, and one more at the end
  std::vector<Term> terms_;
  std::vector<double> rows_;  // cumulative conditional probabilities, levels - 1 in a row
};

}  // namespace poise
