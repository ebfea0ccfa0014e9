/// Fuzzes marginals: what is accepted is one distribution for each variable, and survives being written and read again.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <poise/network.hpp>
#include "fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    const poise::Marginals marginals = poise::parse_mar(content, "marginals");
    require(marginals.num_variables() >= 1 && marginals.values.size() <= size);
    require(marginals.start.back() == marginals.values.size());
    for (const double value : marginals.values) require(value >= 0 && value < 1.001);
    const poise::Marginals again = poise::parse_mar(poise::mar_text(marginals), "again");
    require(again.start == marginals.start);
    require(poise::mean_absolute_error(again, marginals) < 1e-11);
  } catch (const poise::InputError& error) {
    require(std::string_view(error.what()).starts_with("marginals, line "));
  }
  return 0;
}
