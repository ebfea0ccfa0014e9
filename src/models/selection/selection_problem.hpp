/// A selection model with all that belongs to it: names, what columns were divided by, and what was set right.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <poise/extend/models/selection_data.hpp>
#include "models/selection/selection_target.hpp"

namespace poise {

class SelectionProblem {
 public:
  std::string name;
  std::string response;
  std::vector<std::string> names;
  std::shared_ptr<const SelectionLaw> law;
  /// Means and scales of the columns of X: a coefficient of the table is that of the law over `scale`.
  std::vector<double> centre;
  std::vector<double> scale;
  double response_centre = 0.0;
  std::vector<std::string> notes;
  std::vector<std::string> doubts;  ///< about the correlations, a sentence each
  SummaryTable summary;             ///< of fine-mapping
  /// R, where it is in memory and small enough to be factored; for looking whether z and R belong together.
  std::shared_ptr<const DenseCrossProducts> correlations;

  /// The correlation of two columns.
  [[nodiscard]] double correlation(Index i, Index j) const;
};

/// Variables up to which R is factored: some seconds on one core.
inline constexpr Index kMostFactored = 3000;
/// Bytes of columns of X'X that are held where it is not formed.
inline constexpr double kCacheBytes = 1073741824.0;

// What the makers of problems share.

/// Throws where two names are the same.
void check_names(const std::vector<std::string>& names, const std::string& source);
/// Notes columns that are the same but for their scale.
void note_same(const CrossProducts& products, const std::vector<std::string>& names, std::vector<std::string>& notes);
/// The law of a problem; what is unusable is never included, with a note.
void make_law(SelectionProblem& problem, SelectionData data, const SelectionPrior& prior,
              const std::vector<Index>& unusable);

/// "a, b and 3 others".
[[nodiscard]] std::string some_of(const std::vector<std::string>& names, std::size_t most = 5);

}  // namespace poise
