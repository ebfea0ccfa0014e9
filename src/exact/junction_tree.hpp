/// Exact inference in networks of small width: a junction tree, its cost known before it is built.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/network.hpp>

namespace poise {

namespace exact {
struct Tables;
}

/// An order in which variables are eliminated, and the tree of cliques that it leads to. Observed variables and those
/// with one level are in no clique. Sizes are doubles because they may be far beyond any memory.
///
/// A search that meets a table of more than 2^40 entries in every order it tries gives up: `complete` is false, the
/// vectors are empty, `width` is that of the first such table and the sizes are those of a table of 2^40 entries. More
/// would be needed; how much more is not known.
struct EliminationPlan {
  std::vector<Index> order;
  std::vector<std::vector<Index>> cliques;     ///< variables in that order; none is part of another; parents come later
  std::vector<Index> parent;                   ///< of each clique, in a forest; its own number where it is a root
  std::vector<std::vector<Index>> separators;  ///< what a clique shares with its parent, which is its last variables
  Index width = 0;                             ///< variables of the largest clique, less one: the induced width
  double largest_clique = 0.0;                 ///< entries of the largest clique table
  double entries = 0.0;                        ///< of all clique and separator tables
  double bytes = 0.0;                          ///< what JunctionTree needs at its peak, network and plan apart
  double operations = 0.0;       ///< table entries visited, once for every table read: roughly a nanosecond each
  double draw_operations = 0.0;  ///< of one draw, roughly a nanosecond each
  bool complete = true;
};

struct PlanOptions {
  /// The search ends soon after, with what it has found; 0: one order, the quickest to find. Results depend on it, and
  /// on the machine, where it ends the search.
  double seconds = std::numeric_limits<double>::infinity();
  /// Bytes that a plan should keep to: beyond it, or beyond a gigabyte where it is infinite, less memory counts as much
  /// as less work.
  double memory_limit = std::numeric_limits<double>::infinity();
  /// Edges that the search of a connected component looks at, at most, about five nanoseconds each. Unlike seconds it
  /// gives the same plan everywhere.
  double most_looks = std::numeric_limits<double>::infinity();
};

/// Greedy minimum fill, ties by smaller clique table, with some choices left to chance; then annealing of the best of
/// these orders, in rounds, for as long as a round can be expected to save more time than it takes. Connected
/// components are searched one by one. The chance has a seed of its own and effort is counted, not timed: the same
/// network gives the same plan. Networks that take no time to solve take none to plan; where minutes are at stake it is
/// up to half of one.
[[nodiscard]] EliminationPlan plan_elimination(const Network& network, const PlanOptions& options = {});
[[nodiscard]] inline EliminationPlan plan_elimination(const Network& network, double seconds) {
  return plan_elimination(network, PlanOptions{.seconds = seconds});
}

struct ExactOptions {
  double memory_limit = 4294967296.0;  ///< bytes; a plan that needs more is refused
  /// An estimate beyond it is refused by `solve_exact`.
  double seconds = std::numeric_limits<double>::infinity();
  unsigned threads = 0;   ///< 0: as many as there are cores; results are the same, bit by bit
  bool marginals = true;  ///< without them a tree takes half of the time
  bool draws = true;      ///< some memory is saved without them
  /// Called now and then, on the calling thread, with the fraction of the work that is done, 0 to 1; false stops it.
  /// Empty: never called.
  std::function<bool(double part_done)> progress;
};

/// The progress callback said to stop.
class ExactStopped : public std::runtime_error {
 public:
  ExactStopped() : std::runtime_error("exact inference was stopped") {}
};

/// A calibrated junction tree.
///
/// Tables that are collected towards the roots hold logarithms, so that products of factors of any size neither vanish
/// nor overflow. What is handed back from the roots are probabilities: one that is too small for a double is zero to
/// every marginal it goes into. Clique tables are never stored; each is made row by row, twice, from the factors and
/// the separators below it, and the separators are all that takes memory.
class JunctionTree {
 public:
  /// `plan` must be that of `network`, which is not needed afterwards. Throws InputError with the bytes needed where
  /// they exceed the limit, before anything of size is allocated, and where no state has positive probability;
  /// ExactStopped when told to.
  JunctionTree(const Network& network, const EliminationPlan& plan, const ExactOptions& options = {});
  ~JunctionTree();
  JunctionTree(JunctionTree&&) noexcept;
  JunctionTree& operator=(JunctionTree&&) noexcept;

  /// Natural logarithm of the sum of the product of all factors over all states.
  [[nodiscard]] double log_partition() const;
  /// Observed variables have probability 1 at their level. Not without ExactOptions::marginals.
  [[nodiscard]] const Marginals& marginals() const;
  /// An independent state from the distribution, levels of all variables, observed ones included. Any number of threads
  /// may draw at the same time, each with an `rng` of its own. Not without ExactOptions::draws.
  void draw(Rng& rng, std::vector<Index>& out) const;

 private:
  std::unique_ptr<exact::Tables> tables_;
};

}  // namespace poise
