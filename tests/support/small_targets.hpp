/// The enumerable targets that every kernel is checked on.
#pragma once

#include <vector>

#include "models/ising/graph_ising.hpp"
#include "models/ising/lattice_ising.hpp"
#include "support/table_target.hpp"

namespace poise::testing {

inline std::vector<double> random_field(Index n, double scale, std::uint64_t seed) {
  Rng rng(seed, 7);
  std::vector<double> field(n);
  for (double& value : field) value = scale * (2.0 * rng.uniform() - 1.0);
  return field;
}

inline LatticeIsing small_torus() { return {3, 3, Boundary::torus, 0.37, random_field(9, 1.5, 1)}; }
inline LatticeIsing small_open() { return {2, 4, Boundary::open, -0.8, random_field(8, 2.0, 2)}; }
inline LatticeIsing small_line() { return {7, 1, Boundary::open, 0.6, random_field(7, 1.0, 3)}; }

/// Nine variables; variable 0 has eight neighbours, so its chunk of affected moves overflows into a second one.
inline GraphIsing small_graph() {
  std::vector<Edge> edges;
  for (Index j = 1; j < 9; ++j) edges.push_back({0, j, 0.1 * j - 0.5});
  edges.push_back({1, 2, 0.7});
  edges.push_back({5, 3, -0.4});
  return {random_field(9, 1.0, 4), edges};
}

inline TableTarget small_categorical() { return TableTarget::random({3, 2, 1, 4, 2}, 3.0, 5); }
inline TableTarget small_with_zeros() { return TableTarget::random({2, 3, 2, 3}, 2.0, 6, 8); }

}  // namespace poise::testing
