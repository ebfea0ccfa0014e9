/// The edges of a lattice as a list.
#include "models/ising/lattice_edges.hpp"

namespace poise {

std::vector<Edge> lattice_edges(const IsingModel& ising) {
  std::vector<Edge> edges;
  const auto join = [&](Index side, Index position, Index i, Index j) {
    if (side == 1 || (position + 1 == side && (!ising.torus || side == 2))) return;
    edges.push_back({i, j, ising.torus && side == 2 ? 2.0 * ising.coupling : ising.coupling});
  };
  for (Index row = 0; row < ising.rows; ++row) {
    for (Index column = 0; column < ising.columns; ++column) {
      const Index i = row * ising.columns + column;
      join(ising.columns, column, i, row * ising.columns + (column + 1) % ising.columns);
      join(ising.rows, row, i, (row + 1) % ising.rows * ising.columns + column);
    }
  }
  return edges;
}

}  // namespace poise
