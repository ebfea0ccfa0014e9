/// Fields and edges of a lattice.
#include "models/ising/lattice_graph.hpp"

#include <utility>
#include <vector>

namespace poise {

std::shared_ptr<const GraphIsing> lattice_graph(const LatticeIsing& lattice) {
  std::vector<double> field;
  std::vector<Edge> edges;
  for (Index i = 0; i < lattice.num_variables(); ++i) {
    field.push_back(lattice.field(i));
    for (const Index j : lattice.neighbours(i)) {
      if (j > i) edges.push_back({i, j, lattice.coupling()});
    }
  }
  return std::make_shared<const GraphIsing>(std::move(field), edges);
}

}  // namespace poise
