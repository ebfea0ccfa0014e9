/// Fuzzes matrices of correlations, .npy and text: what is accepted is square.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <poise/selection.hpp>
#include "fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    const poise::SymmetricMatrix matrix = poise::read_correlations(content, "R");
    const auto side = static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(matrix.dense.size()))));
    require(side > 0 && side * side == matrix.dense.size());
  } catch (const poise::InputError& error) {
    require(std::string_view(error.what()).starts_with("R"));
  }
  return 0;
}
