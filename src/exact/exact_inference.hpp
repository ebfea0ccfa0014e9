/// Exact marginals and partition function of a network, by one junction tree or, where it does not fit, by one for each
/// combination of levels of a few variables.
#pragma once

#include <span>
#include <vector>

#include <poise/network.hpp>
#include "exact/junction_tree.hpp"

namespace poise {

/// A junction tree and the variables that are conditioned on. Every combination of their levels is a slice: a network
/// in which they are observed, with the same tree for all. A slice needs less memory, and all of them more work.
struct ExactPlan {
  EliminationPlan tree;            ///< of a slice
  std::vector<Index> conditioned;  ///< none: one tree for everything
  double slices = 1.0;

  [[nodiscard]] double operations() const { return slices * tree.operations; }
  /// On one core; measured, and right within a factor of two.
  [[nodiscard]] double seconds() const;
  /// Whether a plan was found that keeps to the memory.
  [[nodiscard]] bool fits(double memory_limit) const { return tree.complete && tree.bytes <= memory_limit; }
};

/// The plan of `plan_elimination`, if it fits `memory_limit`. Elsewhere variables to condition on are added, each time
/// the one that lowers the cost of a slice the most for its number of levels, and the order is annealed again, until a
/// slice fits. Gives up, with the plan of one tree, where slices would take a thousand years of one core.
[[nodiscard]] ExactPlan plan_exact(const Network& network, const PlanOptions& options);

struct ExactAnswer {
  Marginals marginals;         ///< observed variables have probability 1 at their level
  double log_partition = 0.0;  ///< natural logarithm of the sum of the product of all factors over all states
  double slices = 1.0;         ///< that have positive probability
};

/// Slices that zeros rule out are left out at once; those whose probability turns out to be zero end early. As many
/// slices as fit the memory are worked on at the same time, and results are the same for any number of threads. Throws
/// InputError with all numbers where the plan exceeds the limits, of memory or of `seconds`, before it begins, and
/// where no state has positive probability; ExactStopped when told to.
[[nodiscard]] ExactAnswer solve_exact(const Network& network, const ExactPlan& plan, const ExactOptions& options = {});

/// The free variables with more than one level, by connected component: two that share a factor are in the same one.
/// Variables are ascending, components by their first variable. Components are independent of each other.
[[nodiscard]] std::vector<std::vector<Index>> connected_components(const Network& network);

/// The network of some variables, numbered in their order, with their names, and of all factors that depend on one of
/// them or more; observed variables and those with one level leave the scopes. The other variables of these factors
/// must be in the component too: throws InputError where a factor joins it to a free variable outside.
///
/// Factors that depend on no free variable are in no component, so the partition function of `network` is that of all
/// components together times e to the power of `log_constant_of`.
[[nodiscard]] Network component_network(const Network& network, std::span<const Index> variables);

/// Natural logarithm of the product of the factors that depend on no free variable of more than one level.
[[nodiscard]] double log_constant_of(const Network& network);

}  // namespace poise
