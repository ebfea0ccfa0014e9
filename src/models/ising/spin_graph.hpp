/// Ising models as graphs of spins, whatever their shape: what layouts (bits, lanes, flips, bonds) are compiled from.
#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include <poise/types.hpp>

namespace poise {

/// Two variables of a graph, counted from 0, and the coupling between them.
struct Edge {
  Index i;
  Index j;
  double coupling;
};

/// What lattices and graphs have in common. Each edge is a number and an integer, whose sums over states are exact:
/// that of a graph counts units of log p, that of a lattice counts couplings, which are all alike.
template <class T>
concept SpinGraph = requires(const T& target, Index i) {
  { target.num_variables() } -> std::same_as<Index>;
  { target.field(i) } -> std::same_as<double>;
  { target.field_units(i) } -> std::same_as<std::int64_t>;
  /// Calls visit(j, coupling, units) for each neighbour, always in the same order.
  target.for_each_neighbour(i, [](Index, double, std::int64_t) {});
  /// The field that i feels where spin(k), +1 or -1, is the spin of its neighbour number k.
  {
    target.local_field(i, [](std::size_t) { return 1.0; })
    } -> std::same_as<double>;
};

/// Calls visit(i, j, coupling, units) for each edge once, i < j.
template <SpinGraph T, class Visit>
void for_each_edge(const T& target, Visit&& visit) {
  for (Index i = 0; i < target.num_variables(); ++i) {
    target.for_each_neighbour(i, [&](Index j, double coupling, std::int64_t units) {
      if (j > i) visit(i, j, coupling, units);
    });
  }
}

/// The terms of log p as integers, by the position that a layout gives each variable.
struct SpinTerms {
  struct Edge {
    Index first;
    Index second;
    std::int64_t weight;
  };
  std::vector<std::int64_t> fields;
  std::vector<Edge> edges;
};

template <SpinGraph T, class Position>
[[nodiscard]] SpinTerms spin_terms(const T& target, Position&& position) {
  SpinTerms terms;
  terms.fields.resize(target.num_variables());
  for (Index i = 0; i < target.num_variables(); ++i) terms.fields[position(i)] = target.field_units(i);
  for_each_edge(target, [&](Index i, Index j, double, std::int64_t units) {
    terms.edges.push_back({position(i), position(j), units});
  });
  return terms;
}

/// The same by variable.
template <SpinGraph T>
[[nodiscard]] SpinTerms spin_terms(const T& target) {
  return spin_terms(target, [](Index i) { return i; });
}

/// A rectangular lattice, stored row by row. On a torus the last site of a row or column is also joined with the first.
/// In a dimension of two sites these are two parallel edges; in a dimension of one site there is none.
struct LatticeShape {
  Index rows;
  Index columns;
  bool torus;

  /// Calls visit(j, doubled) for the edges from site i to the right and down; of two parallel edges, which are
  /// `doubled`, the second one has j < i.
  template <class Visit>
  void for_each_edge_from(Index i, Visit&& visit) const {
    const auto join = [&](Index side, Index position, Index j) {
      if (side > 1 && (torus || position + 1 < side)) visit(j, torus && side == 2);
    };
    const Index row = i / columns, column = i % columns;
    join(columns, column, row * columns + (column + 1) % columns);
    join(rows, row, (row + 1) % rows * columns + column);
  }
};

/// The same in any number of dimensions, the last one changing fastest.
struct GridShape {
  std::vector<Index> sides;
  bool torus;

  [[nodiscard]] Index num_sites() const {
    Index sites = 1;
    for (const Index side : sides) sites *= side;
    return sites;
  }
  /// Calls visit(i, j, doubled) for each edge; of two parallel edges, which are `doubled`, for both, once with j < i.
  template <class Visit>
  void for_each_edge(Visit&& visit) const {
    const Index sites = num_sites();
    for (Index i = 0; i < sites; ++i) {
      Index stride = 1;
      for (std::size_t d = sides.size(); d-- > 0; stride *= sides[d]) {
        const Index position = i / stride % sides[d];
        if (sides[d] < 2 || (!torus && position + 1 == sides[d])) continue;
        visit(i, position + 1 < sides[d] ? i + stride : i - position * stride, torus && sides[d] == 2);
      }
    }
  }
};

}  // namespace poise
