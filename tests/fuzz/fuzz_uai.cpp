/// Fuzzes UAI networks: what is accepted is a network no larger than its text, and survives being written and read
/// again.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <poise/network.hpp>
#include "fuzz/require.hpp"

namespace {

std::string text_of(const poise::Network& network) {
  std::string text = fmt::format("MARKOV {}", network.num_variables());
  for (const poise::Index levels : network.cardinalities) text += fmt::format(" {}", levels);
  text += fmt::format(" {}", network.num_factors());
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    text += fmt::format("\n{}", network.scope(f).size());
    for (const poise::Index i : network.scope(f)) text += fmt::format(" {}", i);
  }
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    text += fmt::format("\n{}", network.table_size(f));
    for (const double value : network.table(f)) text += fmt::format(" {}", value);
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    const poise::Network network = poise::parse_uai(content, "network");
    require(network.num_variables() >= 1 && network.num_variables() <= size);
    require(network.values.size() <= size && network.scopes.size() <= size && network.num_factors() <= size);
    require(network.scope_start.size() == network.num_factors() + 1);
    for (std::size_t f = 0; f < network.num_factors(); ++f) {
      const auto scope = network.scope(f);
      require(std::set<poise::Index>(scope.begin(), scope.end()).size() == scope.size());
      require(std::all_of(scope.begin(), scope.end(), [&](auto i) { return i < network.num_variables(); }));
      const auto table = network.table(f);
      require(table.data() + table.size() <= network.values.data() + network.values.size());
      require(std::all_of(table.begin(), table.end(), [](double x) { return std::isfinite(x) && x >= 0; }));
      require(std::any_of(table.begin(), table.end(), [](double x) { return x > 0; }));
    }
    const poise::Network again = poise::parse_uai(text_of(network), "again");
    require(again.cardinalities == network.cardinalities && again.values == network.values);
    require(again.scopes == network.scopes && again.table_start == network.table_start);
  } catch (const poise::InputError& error) {
    require(std::string_view(error.what()).starts_with("network, line "));
  }
  return 0;
}
