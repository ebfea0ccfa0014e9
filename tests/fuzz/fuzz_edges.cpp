/// Fuzzes edge lists: what is accepted is a simple graph on the variables it declares, with finite couplings.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "fuzz/require.hpp"
#include "models/ising/ising_model.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    const poise::EdgeList graph = poise::parse_edges(content, "graph", 0.5);
    require(graph.variables >= 1 && graph.edges.size() <= size);
    std::set<std::pair<poise::Index, poise::Index>> seen;
    for (const poise::Edge& edge : graph.edges) {
      require(edge.i < graph.variables && edge.j < graph.variables && edge.i != edge.j);
      require(std::isfinite(edge.coupling));
      require(seen.insert(std::minmax(edge.i, edge.j)).second);
    }
  } catch (const poise::InputError& error) {
    require(std::string_view(error.what()).starts_with("graph"));
  }
  return 0;
}
