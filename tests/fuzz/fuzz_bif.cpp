/// Fuzzes the Bayesian Interchange Format: what is accepted has names, and one distribution for each variable.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <string_view>

#include <poise/network.hpp>
#include "fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    const poise::Network network = poise::parse_bif(content, "network");
    const poise::Index n = network.num_variables();
    require(n >= 1 && n <= size && network.names.size() == n && network.level_names.size() == n);
    require(std::set<std::string>(network.names.begin(), network.names.end()).size() == n);
    for (poise::Index i = 0; i < n; ++i) require(network.level_names[i].size() == network.cardinalities[i]);
    require(network.num_factors() == n);
    std::set<poise::Index> children;
    for (std::size_t f = 0; f < n; ++f) {
      const auto scope = network.scope(f);
      require(std::set<poise::Index>(scope.begin(), scope.end()).size() == scope.size());
      require(children.insert(scope.back()).second);
      const std::size_t levels = network.cardinalities[scope.back()];
      const auto table = network.table(f);
      require(table.data() + table.size() <= network.values.data() + network.values.size());
      for (std::size_t row = 0; row < table.size(); row += levels) {
        const auto numbers = table.subspan(row, levels);
        const double sum = std::accumulate(numbers.begin(), numbers.end(), 0.0);
        require(std::abs(sum - 1) < 0.01 + 0.005 * static_cast<double>(levels));
      }
    }
  } catch (const poise::InputError& error) {
    require(std::string_view(error.what()).starts_with("network, line "));
  }
  return 0;
}
