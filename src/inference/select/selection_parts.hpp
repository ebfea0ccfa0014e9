/// What an answer of variable selection is put together from.
#pragma once

#include <cstddef>
#include <vector>

#include <poise/selection.hpp>
#include "models/selection/selection_problem.hpp"
#include "models/selection/selection_target.hpp"

namespace poise {

/// A set of variables that draws had, and how many of them.
struct DrawnModel {
  std::vector<Index> variables;  ///< in increasing order
  double draws = 0.0;
};

/// States of all chains, one behind the other: by default the first is empty, the second what greedy addition finds,
/// the others random.
[[nodiscard]] std::vector<Value> selection_starts(const Model& model, const SelectionTarget& target,
                                                  const SelectOptions& options, SelectStart how);

/// The models of all draws, the most frequent first.
[[nodiscard]] std::vector<DrawnModel> drawn_models(const Trace& trace, Index variables);

/// Smallest groups of variables, all correlated by `purity` at least, of which one is included with probability
/// `coverage` at least. Disjoint; the first has the most probable variable.
[[nodiscard]] std::vector<CredibleSet> credible_sets(const SelectionProblem& problem,
                                                     const std::vector<DrawnModel>& models,
                                                     const SelectOptions& options);

/// Posterior means, deviations and intervals of coefficients, averaged over models, in units of the table.
void add_coefficients(const SelectionProblem& problem, const std::vector<DrawnModel>& models,
                      const SelectOptions& options, SelectionAnswer& answer);

/// The most probable variables, and their correlations.
void add_correlations(const SelectionProblem& problem, SelectionAnswer& answer);

/// Says which z scores do not belong to R.
void add_inconsistencies(const SelectionProblem& problem, std::vector<Warning>& warnings);

}  // namespace poise
