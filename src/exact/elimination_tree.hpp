/// An elimination order as a tree that can be changed a little at a time, and a search that anneals it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <poise/extend/base/rng.hpp>

#include "exact/elimination_order.hpp"

namespace poise::exact {

/// How one annealing goes: from the first temperature to the last, by equal factors, within its looks. A temperature is
/// that of the logarithm of the entries.
struct Annealing {
  double first_temperature = 0.5;
  double last_temperature = 0.15;
  std::uint64_t looks = 0;
};

/// Every vertex hangs from the first one that is eliminated after it among its later neighbours. Orders in which
/// children come before their parents all lead to the same tables, so the tree is what there is to search.
///
/// The one move is a rotation: a vertex and its parent change their order. What is below both stays as it is, as does
/// what is above; two tables are new. Rotations lead from any order to any other.
class EliminationTree {
 public:
  EliminationTree(const Graph& graph, std::span<const Index> order);

  /// Sum over vertices of the table of the vertex with its later neighbours.
  [[nodiscard]] double entries() const;
  /// Children before parents.
  [[nodiscard]] std::vector<Index> vertices() const;
  /// The same, with the later neighbours of each.
  [[nodiscard]] Order order() const;
  /// Rotates at random, what makes tables smaller always, what makes them larger the less often the colder it is. Ends
  /// with the best tree that was seen at the end of a sweep. Being late ends it too.
  void anneal(const Annealing& annealing, Rng& rng, Effort& effort);

 private:
  static constexpr Index kNone = Network::kFree;

  /// What a rotation would lead to.
  struct Rotation {
    Index child;
    Index parent;
    double child_table;  ///< logarithms of the new tables
    double parent_table;
  };

  void hang_up(std::span<const Index> order);
  [[nodiscard]] Rotation look_at(Index child, Effort& effort);
  void rotate(const Rotation& rotation);
  [[nodiscard]] bool is_later(Index vertex, Index of) const;

  const Graph& graph_;
  std::vector<Index> parent_;  ///< kNone: a root
  std::vector<std::vector<Index>> children_;
  std::vector<std::vector<Index>> later_;  ///< later neighbours, in no order
  std::vector<double> log_table_;
  std::vector<std::uint64_t> mark_;
  std::vector<Index> found_;  ///< later neighbours of the parent after the rotation that was looked at last
  std::uint64_t stamp_ = 0;
};

}  // namespace poise::exact
