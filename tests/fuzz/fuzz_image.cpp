/// Any bytes are either an image of the size they claim or an InputError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include <poise/image.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t max_pixels = 1 << 20;
  try {
    const auto image = poise::parse_image(std::as_bytes(std::span(data, size)), "input", max_pixels);
    const bool right = image.width > 0 && image.height > 0 && image.width * image.height <= max_pixels &&
                       (image.channels == 1 || image.channels == 3) &&
                       image.pixels.size() == image.width * image.height * image.channels;
    if (!right) std::abort();
  } catch (const poise::InputError&) {
  }
  return 0;
}
