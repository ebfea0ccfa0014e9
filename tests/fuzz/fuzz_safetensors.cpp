/// Fuzzes safetensors files: what is accepted is an RBM whose sizes fit, and the same once written and read again.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"
#include "models/rbm/rbm_weights.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    const poise::RbmWeights rbm = poise::parse_safetensors(content, "file");
    require(rbm.visible > 0 && rbm.hidden > 0 && rbm.weights.size() == std::size_t{rbm.visible} * rbm.hidden);
    require(rbm.visible_bias.size() == rbm.visible && rbm.hidden_bias.size() == rbm.hidden);
    require(rbm.weights.size() <= size / 4);
    require(rbm.rows == 0 ? rbm.columns == 0 : std::size_t{rbm.rows} * rbm.columns == rbm.visible);
    require(std::all_of(rbm.weights.begin(), rbm.weights.end(), [](float value) { return std::isfinite(value); }));
    require(poise::parse_safetensors(poise::safetensors_bytes(rbm), "again") == rbm);
  } catch (const poise::InputError& error) {
    require(std::string_view(error.what()).starts_with("file: "));
  }
  return 0;
}
