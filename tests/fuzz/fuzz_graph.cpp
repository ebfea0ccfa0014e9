/// Fuzzes graphs in both formats: what is accepted is simple, in order, and on the vertices it declares.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"
#include "models/network/independent_set.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    const poise::SimpleGraph graph = poise::parse_graph(content, "graph");
    require(graph.vertices >= 1 && graph.edges.size() <= size);
    for (const auto& [i, j] : graph.edges) require(i < j && j < graph.vertices);
    require(std::is_sorted(graph.edges.begin(), graph.edges.end()));
    require(std::adjacent_find(graph.edges.begin(), graph.edges.end()) == graph.edges.end());
  } catch (const poise::InputError& error) {
    require(std::string_view(error.what()).starts_with("graph"));
  }
  return 0;
}
