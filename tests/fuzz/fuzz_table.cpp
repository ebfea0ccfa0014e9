/// Fuzzes tables of observations and of z scores: what is accepted has a number in every place.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <poise/selection.hpp>
#include "fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    const poise::RegressionTable table = poise::read_regression(content, "table", "y");
    require(table.x.size() == table.names.size() * table.y.size());
    for (const double value : table.x) require(std::isfinite(value));
    for (const double value : table.y) require(std::isfinite(value));
  } catch (const poise::InputError&) {
  }
  try {
    const poise::SummaryTable table = poise::read_summary(content, "table");
    require(table.z.size() == table.names.size() && table.extra.size() == table.z.size());
    for (const auto& row : table.extra) require(row.size() == table.extra_heads.size());
    for (const double value : table.z) require(std::isfinite(value) || std::isinf(value));
  } catch (const poise::InputError& error) {
    require(std::string_view(error.what()).starts_with("table"));
  }
  return 0;
}
