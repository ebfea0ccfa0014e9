/// An Ising model as a problem in integers: the state with the largest sum of fields and couplings.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <poise/types.hpp>
#include "models/ising/spin_graph.hpp"

namespace poise {

/// A spin of -1 or +1.
using Spin = std::int8_t;

/// value(x) = sum a_i x_i + sum_(ij) w_ij x_i x_j, to be as large as possible. Neighbours lie one after another:
/// those of variable i are entries start[i] to start[i + 1].
struct SpinProblem {
  std::vector<std::int64_t> field;
  std::vector<std::size_t> start = {0};
  std::vector<Index> neighbour;
  std::vector<std::int64_t> weight;

  [[nodiscard]] Index num_variables() const { return static_cast<Index>(field.size()); }
  [[nodiscard]] std::size_t degree(Index i) const { return start[i + 1] - start[i]; }
  /// The field that variable i feels.
  [[nodiscard]] std::int64_t local_field(Index i, std::span<const Spin> spins) const;
  [[nodiscard]] std::int64_t value(std::span<const Spin> spins) const;
  /// The largest local field that variable i can feel.
  [[nodiscard]] std::int64_t strength(Index i) const;
  /// Whether all spins can be flipped together at no cost.
  [[nodiscard]] bool is_symmetric() const;
};

/// Fields and couplings of an Ising model in a common unit. The unit is exact where all of them are multiples of one
/// number up to rounding; otherwise it is so fine that rounding changes no sum by more than 2^-40 of the largest.
[[nodiscard]] SpinProblem spin_problem(const std::vector<double>& field, const std::vector<Edge>& edges);

template <SpinGraph T>
[[nodiscard]] SpinProblem spin_problem(const T& target) {
  std::vector<double> field(target.num_variables());
  for (Index i = 0; i < field.size(); ++i) field[i] = target.field(i);
  std::vector<Edge> edges;
  for_each_edge(target, [&](Index i, Index j, double coupling, std::int64_t) { edges.push_back({i, j, coupling}); });
  return spin_problem(field, edges);
}

}  // namespace poise
