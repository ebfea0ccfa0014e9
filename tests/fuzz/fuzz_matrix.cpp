/// Fuzzes matrices: what is accepted is rectangular and finite, and the same numbers in the reader of any layout.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"
#include "models/ising/ising_model.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  bool is_ragged = true;
  try {
    const poise::Matrix matrix = poise::parse_matrix(content, "matrix");
    is_ragged = false;
    require(matrix.rows >= 1 && matrix.columns >= 1);
    require(matrix.values.size() == std::size_t{matrix.rows} * matrix.columns);
    require(std::all_of(matrix.values.begin(), matrix.values.end(), [](double x) { return std::isfinite(x); }));
    require(matrix.values == poise::parse_numbers(content, "matrix"));
  } catch (const poise::InputError& error) {
    require(is_ragged && std::string_view(error.what()).starts_with("matrix"));
  }
  try {
    require(poise::parse_numbers(content, "numbers").size() <= size);
  } catch (const poise::InputError& error) {
    require(is_ragged && std::string_view(error.what()).starts_with("numbers, line "));
  }
  return 0;
}
