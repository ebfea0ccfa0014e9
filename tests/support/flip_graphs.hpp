/// Graphs on which single flips are tried: small ones of every kind, to be enumerated, and larger ones with hubs.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <poise/model.hpp>
#include "models/ising/graph_ising.hpp"
#include "models/ising/ising_model.hpp"
#include "support/small_targets.hpp"

namespace poise::testing {

/// A graph as a model, and as the target that the model makes of it.
inline IsingModel as_graph(std::string name, std::vector<double> field, std::vector<Edge> edges) {
  IsingModel model;
  model.name = std::move(name);
  model.variables = static_cast<Index>(field.size());
  model.field = std::move(field);
  model.edges = std::move(edges);
  return model;
}
inline std::shared_ptr<const GraphIsing> target_of(const IsingModel& model) {
  return std::make_shared<const GraphIsing>(model.field, model.edges);
}

/// Log ratios are within the range of weights on all of them.
inline std::vector<IsingModel> small_flip_graphs() {
  std::vector<Edge> hub, ring, full, few;
  for (Index j = 1; j < 9; ++j) hub.push_back({0, j, 0.1 * j - 0.5});
  hub.push_back({1, 2, 0.7});
  hub.push_back({5, 3, -0.4});
  for (Index i = 0; i < 6; ++i) ring.push_back({i, (i + 1) % 6, 0.5});
  for (Index i = 0; i < 7; ++i) {
    for (Index j = i + 1; j < 7; ++j) full.push_back({i, j, 11.0 * std::sin(1.0 + i + 7.0 * j)});
  }
  few.push_back({1, 4, 0.8});
  return {as_graph("hub", random_field(9, 1.0, 4), hub), as_graph("no fields", std::vector<double>(6, 0.0), ring),
          as_graph("strong couplings", random_field(7, 5.0, 5), full),
          as_graph("most without neighbours", random_field(7, 2.0, 6), few),
          as_graph("one edge", {0.0, 0.0}, {{0, 1, -0.6}})};
}

/// Log ratios in the thousands.
inline IsingModel huge_ratios() {
  return as_graph("huge ratios", {300.0, -1.0, 0.5, 2000.0, -0.3, 0.2},
                  {{0, 1, 500.0}, {1, 2, -1200.0}, {2, 3, 0.4}, {3, 4, 700.0}, {4, 5, 0.3}, {0, 5, -350.0}});
}

/// A ring with some chords, and a variable 0 with as many neighbours as asked for.
inline IsingModel ring_with_hub(Index n, Index spokes) {
  Rng rng(n, spokes);
  std::vector<Edge> edges;
  const auto coupling = [&] { return rng.uniform() - 0.5; };
  for (Index i = 1; i + 1 < n; ++i) edges.push_back({i, i + 1, coupling()});
  for (Index i = 1; i + n / 3 < n; i += 2) {
    if (n / 3 > 1) edges.push_back({i, i + n / 3, coupling()});
  }
  for (Index k = 0; k < spokes; ++k) edges.push_back({0, 1 + k * (n - 1) / spokes, 0.1 * coupling()});
  return as_graph("ring with a hub", random_field(n, 1.0, n), edges);
}

}  // namespace poise::testing
