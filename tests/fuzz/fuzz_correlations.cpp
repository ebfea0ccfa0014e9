/// Fuzzes matrices of correlations, .npy, .npz and text: what is accepted is square.
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
    if (!matrix.column_start.empty()) {
      require(matrix.column_start.back() == matrix.rows.size() && matrix.rows.size() == matrix.values.size());
      return 0;
    }
    const auto side = static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(matrix.dense.size()))));
    require(side > 0 && side * side == matrix.dense.size());
  } catch (const poise::InputError& error) {
    require(std::string_view(error.what()).starts_with("R"));
  }
  return 0;
}
