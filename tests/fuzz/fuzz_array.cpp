/// Fuzzes arrays of numbers: npy, npz and text. What is accepted has as many numbers as its shape says.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"
#include "models/rbm/number_array.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    const poise::NumberArray array = poise::parse_number_array(content, "array");
    std::uint64_t count = 1;
    for (const std::uint64_t side : array.shape) count *= side;
    require(array.values.size() == count);
  } catch (const poise::InputError& error) {
    require(std::string_view(error.what()).starts_with("array"));
  }
  return 0;
}
