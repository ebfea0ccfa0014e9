/// Fuzzes quadratic functions: what is accepted has each pair once, finite numbers, and no more variables than allowed.
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
    const poise::Qubo qubo = poise::parse_qubo(content, "qubo");
    require(!qubo.linear.empty() && qubo.linear.size() <= 1'000'000 + size && qubo.quadratic.size() <= size);
    for (const double value : qubo.linear) require(std::isfinite(value));
    std::set<std::pair<poise::Index, poise::Index>> seen;
    for (const poise::Edge& edge : qubo.quadratic) {
      require(edge.i < edge.j && edge.j < qubo.linear.size() && std::isfinite(edge.coupling));
      require(seen.insert({edge.i, edge.j}).second);
    }
  } catch (const poise::InputError& error) {
    require(std::string_view(error.what()).starts_with("qubo"));
  }
  return 0;
}
