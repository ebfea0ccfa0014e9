/// Fuzzes IDX files, plain and gzip: what is accepted has as many pixels as its sizes say, and as many as it may.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"
#include "studies/images/idx.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  constexpr std::uint64_t max_bytes = 1 << 20;
  try {
    const poise::IdxImages images = poise::parse_idx(content, "images", max_bytes);
    require(images.count > 0 && images.rows > 0 && images.columns > 0);
    require(images.pixels.size() == images.count * images.rows * images.columns && images.pixels.size() <= max_bytes);
    require(poise::binarise(images, -1) == std::vector<std::uint8_t>(images.pixels.size(), 1));
  } catch (const poise::InputError& error) {
    require(std::string_view(error.what()).starts_with("images: "));
  }
  return 0;
}
