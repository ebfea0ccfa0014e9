/// Small pictures: images read and written, values painted, panels set side by side with captions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/types.hpp>

namespace poise {

/// 8 bits a channel, row by row from the top; one channel is gray, three are red, green, blue.
struct Image {
  std::size_t width = 0;
  std::size_t height = 0;
  std::size_t channels = 1;
  std::vector<std::uint8_t> pixels;

  [[nodiscard]] bool operator==(const Image&) const = default;
};

/// Red, green and blue from 0 to 255.
struct Color {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;

  [[nodiscard]] bool operator==(const Color&) const = default;
};

/// Larger images are refused before memory is taken for them.
inline constexpr std::size_t kMaxPixels = 100'000'000;

/// Reads a PNG of any kind, or a Netpbm file (PBM, PGM, PPM; plain and raw), as 8-bit gray or RGB. Transparent pixels
/// of a PNG are shown on white, palettes become RGB. Samples of Netpbm are scaled to 0 .. 255; a black PBM pixel, which
/// the file calls 1, becomes 0. An InputError says what is wrong with the file.
[[nodiscard]] Image read_image(const std::string& path);

/// The same from memory; `name` stands for the file in errors.
[[nodiscard]] Image parse_image(std::span<const std::byte> bytes, const std::string& name,
                                std::size_t max_pixels = kMaxPixels);

/// Writes beside the path and renames, so that the path never holds half a picture.
void write_png(const std::string& path, const Image& image);

/// The same in the format that the ending says: `.png`, `.ppm` (colours) or `.pgm` (gray); PNG where there is none. An
/// InputError names the endings.
void write_image(const std::string& path, const Image& image);

/// Whether the ending of a path is one of these, or there is none.
[[nodiscard]] bool is_image_path(const std::string& path);

/// What `write_png` writes, for small pictures that go into another file.
[[nodiscard]] std::string png_bytes(const Image& image);

/// Luminance (Rec. 601) of a colour image.
[[nodiscard]] Image to_gray(const Image& image);
/// Three channels from one; a colour image stays as it is.
[[nodiscard]] Image to_rgb(const Image& image);

/// Every pixel becomes a square of factor * factor pixels.
[[nodiscard]] Image enlarge(const Image& image, std::size_t factor);

/// Colours of values in [low, high]; what lies outside takes the colour of the nearer end, NaN a gray of its own in the
/// diverging map and the middle in the gray one. Both can be told apart by readers who see few colours.
using ColorMap = Color (*)(double value, double low, double high);
[[nodiscard]] Color gray_color(double value, double low, double high);       ///< black to white
[[nodiscard]] Color diverging_color(double value, double low, double high);  ///< blue, white, orange

/// A matrix of values, row by row.
struct Grid {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<double> values;
};

/// Means over boxes of factor * factor entries (those at the far edges may be smaller).
[[nodiscard]] Grid reduce(const Grid& grid, std::size_t factor);

/// One pixel an entry.
[[nodiscard]] Image paint(const Grid& grid, double low, double high, ColorMap map = gray_color);

/// Draws text with its upper left corner at (x, y), in a built-in bitmap font for printable ASCII; `size` is the number
/// of pixels of one dot of the font. What falls outside the image is left out.
void draw_text(Image& image, std::string_view text, std::size_t x, std::size_t y, std::size_t size);
/// Size of a text that `draw_text` draws, in pixels.
[[nodiscard]] std::size_t text_width(std::string_view text, std::size_t size);
/// Height of a line, in pixels.
[[nodiscard]] std::size_t text_height(std::size_t size);

/// A picture and the line below it.
struct Panel {
  Image image;
  std::string caption;
};

/// Panels in a row on white, each with a thin border and its caption centred below.
[[nodiscard]] Image side_by_side(const std::vector<Panel>& panels, std::size_t text_size = 2);

/// Pictures of one size in rows of `per_row`, a gap between them.
[[nodiscard]] Image contact_sheet(const std::vector<Image>& pictures, std::size_t per_row);

/// A lattice posterior at a glance: noisy image, one draw, posterior mean; about 1000 pixels wide.
/// `field` has any range and is shown symmetrically about 0; `draw` holds -1 and +1, `mean` values in [-1, 1].
[[nodiscard]] Image segmentation_panels(std::size_t rows, std::size_t columns, std::span<const double> field,
                                        std::span<const std::int8_t> draw, std::span<const double> mean);

}  // namespace poise
