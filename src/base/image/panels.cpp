/// Values to colours, text to pixels, and panels set side by side.
#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <poise/image.hpp>

#include "base/image/font.hpp"

namespace poise {

namespace {

constexpr std::size_t kPanelWidth = 320;   // of a lattice that is enlarged
constexpr std::size_t kMostColumns = 700;  // of one that is not reduced
constexpr Color kInk{40, 40, 40};
constexpr Color kBorder{110, 110, 110};
constexpr Color kMissing{160, 160, 160};

Color mixed(const Color& a, const Color& b, double weight) {
  const auto mix = [&](std::uint8_t x, std::uint8_t y) {
    return static_cast<std::uint8_t>(std::lround((1 - weight) * x + weight * y));
  };
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

void set_pixel(Image& image, std::size_t x, std::size_t y, Color color) {
  if (x >= image.width || y >= image.height) return;
  std::uint8_t* pixel = image.pixels.data() + (y * image.width + x) * image.channels;
  if (image.channels == 1) {
    pixel[0] = color.green;
  } else {
    pixel[0] = color.red;
    pixel[1] = color.green;
    pixel[2] = color.blue;
  }
}

/// Lays ink over a pixel.
void blend_pixel(Image& image, std::size_t x, std::size_t y, double cover) {
  if (x >= image.width || y >= image.height || cover <= 0) return;
  const std::uint8_t* pixel = image.pixels.data() + (y * image.width + x) * image.channels;
  const std::size_t last = image.channels - 1;
  set_pixel(image, x, y, mixed({pixel[0], pixel[last / 2], pixel[last]}, kInk, cover));
}

/// First and last column of a glyph that hold a dot: letters take as much room as they need.
std::pair<std::size_t, std::size_t> extent(const font::Glyph& glyph) {
  std::size_t first = font::kWidth;
  std::size_t last = 0;
  for (std::size_t row = 0; row < font::kHeight; ++row) {
    for (std::size_t column = 0; column < font::kWidth; ++column) {
      if (!glyph.has_dot(row, column)) continue;
      first = std::min(first, column);
      last = std::max(last, column);
    }
  }
  return {first, last};
}

/// A line of the pen between two dots (or on one).
struct Stroke {
  double x, y, dx, dy;

  [[nodiscard]] double distance(double px, double py) const {
    const double length = dx * dx + dy * dy;
    const double along = length > 0 ? std::clamp(((px - x) * dx + (py - y) * dy) / length, 0.0, 1.0) : 0;
    return std::hypot(px - x - along * dx, py - y - along * dy);
  }
};

/// Neighbouring dots joined by lines, so that letters have smooth strokes at any size. Dots that touch at a corner are
/// joined only if no third dot already joins them.
std::vector<Stroke> strokes_of(const font::Glyph& glyph) {
  const auto has = [&](std::size_t x, std::size_t y) {
    return x < font::kWidth && y < font::kHeight && glyph.has_dot(y, x);
  };
  std::vector<Stroke> strokes;
  for (std::size_t y = 0; y < font::kHeight; ++y) {
    for (std::size_t x = 0; x < font::kWidth; ++x) {
      if (!has(x, y)) continue;
      const double fx = static_cast<double>(x);
      const double fy = static_cast<double>(y);
      strokes.push_back({fx, fy, 0, 0});
      if (has(x + 1, y)) strokes.push_back({fx, fy, 1, 0});
      if (has(x, y + 1)) strokes.push_back({fx, fy, 0, 1});
      if (has(x, y + 1)) continue;
      if (has(x + 1, y + 1) && !has(x + 1, y)) strokes.push_back({fx, fy, 1, 1});
      if (x > 0 && has(x - 1, y + 1) && !has(x - 1, y)) strokes.push_back({fx, fy, -1, 1});
    }
  }
  return strokes;
}

constexpr double kPenRadius = 0.5;  // in dots
constexpr std::size_t kSpace = 3;   // dots of a blank
constexpr std::size_t kGap = 1;     // dots between letters

double clamped_fraction(double value, double low, double high) {
  if (!(high > low)) return 0.5;
  return std::clamp((value - low) / (high - low), 0.0, 1.0);
}

void check(const Grid& grid) {
  if (grid.values.size() != grid.rows * grid.columns) {
    throw std::invalid_argument("a grid must have rows * columns values");
  }
}

/// Half of a range about 0 that leaves out the few largest values, which would darken the rest.
double shown_range(std::span<const double> values) {
  std::vector<double> sizes;
  for (const double value : values) {
    if (std::isfinite(value)) sizes.push_back(std::abs(value));
  }
  if (sizes.empty()) return 1;
  const auto nth = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() * 98 / 100);
  std::nth_element(sizes.begin(), nth, sizes.end());
  return *nth > 0 ? *nth : 1;
}

}  // namespace

Image to_gray(const Image& image) {
  if (image.channels == 1) return image;
  Image gray{image.width, image.height, 1, std::vector<std::uint8_t>(image.width * image.height)};
  for (std::size_t i = 0; i < gray.pixels.size(); ++i) {
    const std::uint8_t* pixel = image.pixels.data() + 3 * i;
    gray.pixels[i] = static_cast<std::uint8_t>((299U * pixel[0] + 587U * pixel[1] + 114U * pixel[2] + 500U) / 1000U);
  }
  return gray;
}

Image to_rgb(const Image& image) {
  if (image.channels == 3) return image;
  Image rgb{image.width, image.height, 3, {}};
  rgb.pixels.reserve(3 * image.pixels.size());
  for (const std::uint8_t value : image.pixels) rgb.pixels.insert(rgb.pixels.end(), 3, value);
  return rgb;
}

Image enlarge(const Image& image, std::size_t factor) {
  if (factor == 0) throw std::invalid_argument("enlarge: the factor must be at least 1");
  Image large{image.width * factor, image.height * factor, image.channels, {}};
  large.pixels.reserve(large.width * large.height * large.channels);
  for (std::size_t y = 0; y < large.height; ++y) {
    for (std::size_t x = 0; x < large.width; ++x) {
      const std::uint8_t* pixel = image.pixels.data() + (y / factor * image.width + x / factor) * image.channels;
      large.pixels.insert(large.pixels.end(), pixel, pixel + image.channels);
    }
  }
  return large;
}

Color gray_color(double value, double low, double high) {
  if (std::isnan(value)) return {128, 128, 128};
  const auto level = static_cast<std::uint8_t>(std::lround(255 * clamped_fraction(value, low, high)));
  return {level, level, level};
}

Color diverging_color(double value, double low, double high) {
  if (std::isnan(value)) return kMissing;
  // Lightness falls alike on both sides, and blue and orange stay apart in every common kind of colour blindness.
  constexpr std::array<Color, 5> stops{Color{8, 48, 107}, Color{66, 146, 198}, Color{247, 247, 247},
                                       Color{230, 130, 30}, Color{120, 50, 4}};
  const double at = clamped_fraction(value, low, high) * static_cast<double>(stops.size() - 1);
  const auto stop = std::min(static_cast<std::size_t>(at), stops.size() - 2);
  return mixed(stops[stop], stops[stop + 1], at - static_cast<double>(stop));
}

Grid reduce(const Grid& grid, std::size_t factor) {
  check(grid);
  if (factor == 0) throw std::invalid_argument("reduce: the factor must be at least 1");
  Grid small{(grid.rows + factor - 1) / factor, (grid.columns + factor - 1) / factor, {}};
  std::vector<double> counts(small.rows * small.columns);
  small.values.resize(counts.size());
  for (std::size_t row = 0; row < grid.rows; ++row) {
    for (std::size_t column = 0; column < grid.columns; ++column) {
      const std::size_t box = row / factor * small.columns + column / factor;
      small.values[box] += grid.values[row * grid.columns + column];
      counts[box] += 1;
    }
  }
  for (std::size_t i = 0; i < counts.size(); ++i) small.values[i] /= counts[i];
  return small;
}

Image paint(const Grid& grid, double low, double high, ColorMap map) {
  check(grid);
  Image image{grid.columns, grid.rows, 3, std::vector<std::uint8_t>(3 * grid.values.size())};
  for (std::size_t i = 0; i < grid.values.size(); ++i) {
    set_pixel(image, i % grid.columns, i / grid.columns, map(grid.values[i], low, high));
  }
  return image;
}

std::size_t text_width(std::string_view text, std::size_t size) {
  std::size_t dots = 0;
  for (const char character : text) {
    const auto [first, last] = extent(font::glyph_of(character));
    dots += (character == ' ' ? kSpace : last - first + 1) + kGap;
  }
  return dots == 0 ? 0 : (dots - kGap) * size;
}

std::size_t text_height(std::size_t size) { return font::kHeight * size; }

void draw_text(Image& image, std::string_view text, std::size_t x, std::size_t y, std::size_t size) {
  const auto dot = static_cast<double>(size);
  for (const char character : text) {
    if (character == ' ') {
      x += (kSpace + kGap) * size;
      continue;
    }
    const font::Glyph glyph = font::glyph_of(character);
    const auto [first, last] = extent(glyph);
    const std::vector<Stroke> strokes = strokes_of(glyph);
    for (std::size_t py = 0; py < font::kHeight * size; ++py) {
      for (std::size_t px = 0; px < (last - first + 1) * size; ++px) {
        const double at_x = (static_cast<double>(px) + 0.5) / dot - 0.5 + static_cast<double>(first);
        const double at_y = (static_cast<double>(py) + 0.5) / dot - 0.5;
        double distance = kPenRadius + 1;
        for (const Stroke& stroke : strokes) distance = std::min(distance, stroke.distance(at_x, at_y));
        // The share of the pixel under the pen: one pixel is 1 / size dots.
        blend_pixel(image, x + px, y + py, std::clamp((kPenRadius - distance) * dot + 0.5, 0.0, 1.0));
      }
    }
    x += (last - first + 1 + kGap) * size;
  }
}

Image side_by_side(const std::vector<Panel>& panels, std::size_t text_size) {
  const std::size_t gap = 10 * text_size;
  const std::size_t margin = 6 * text_size;
  const std::size_t caption_height = text_height(text_size) + 4 * text_size;
  std::vector<std::size_t> widths;  // of a panel with its border, or of its caption
  std::size_t width = 2 * margin;
  std::size_t height = 0;
  for (const Panel& panel : panels) {
    widths.push_back(std::max(panel.image.width + 2, text_width(panel.caption, text_size)));
    width += widths.back() + (widths.size() > 1 ? gap : 0);
    height = std::max(height, panel.image.height + 2);
  }
  Image whole{width, height + 2 * margin + caption_height, 3, {}};
  whole.pixels.assign(whole.width * whole.height * 3, 255);
  std::size_t left = margin;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const Image image = to_rgb(panels[i].image);
    const std::size_t x0 = left + (widths[i] - image.width - 2) / 2;
    for (std::size_t y = 0; y < image.height + 2; ++y) {
      for (std::size_t x = 0; x < image.width + 2; ++x) {
        const bool inside = x > 0 && y > 0 && x <= image.width && y <= image.height;
        const std::uint8_t* pixel = image.pixels.data() + (inside ? ((y - 1) * image.width + x - 1) * 3 : 0);
        set_pixel(whole, x0 + x, margin + y, inside ? Color{pixel[0], pixel[1], pixel[2]} : kBorder);
      }
    }
    const std::size_t offset = (widths[i] - text_width(panels[i].caption, text_size)) / 2;
    draw_text(whole, panels[i].caption, left + offset, margin + height + 4 * text_size, text_size);
    left += widths[i] + gap;
  }
  return whole;
}

Image contact_sheet(const std::vector<Image>& pictures, std::size_t per_row) {
  if (pictures.empty() || per_row == 0) return {};
  constexpr std::size_t gap = 2;
  const std::size_t width = pictures.front().width + gap;
  const std::size_t height = pictures.front().height + gap;
  Image sheet;
  sheet.width = std::min(per_row, pictures.size()) * width + gap;
  sheet.height = (pictures.size() + per_row - 1) / per_row * height + gap;
  sheet.pixels.assign(sheet.width * sheet.height, 128);
  for (std::size_t k = 0; k < pictures.size(); ++k) {
    const Image picture = to_gray(pictures[k]);
    const std::size_t left = k % per_row * width + gap;
    const std::size_t top = k / per_row * height + gap;
    for (std::size_t y = 0; y < picture.height; ++y) {
      std::copy_n(picture.pixels.begin() + static_cast<std::ptrdiff_t>(y * picture.width), picture.width,
                  sheet.pixels.begin() + static_cast<std::ptrdiff_t>((top + y) * sheet.width + left));
    }
  }
  return sheet;
}

Image segmentation_panels(std::size_t rows, std::size_t columns, std::span<const double> field,
                          std::span<const std::int8_t> draw, std::span<const double> mean) {
  const std::size_t sites = rows * columns;
  if (sites == 0 || field.size() != sites || draw.size() != sites || mean.size() != sites) {
    throw std::invalid_argument("segmentation_panels: field, draw and mean must have rows * columns entries");
  }
  const std::size_t extent_in_columns = std::max(columns, rows / 2);  // a tall lattice is kept from growing too tall
  const std::size_t factor = std::max<std::size_t>(kPanelWidth / extent_in_columns, 1);
  const std::size_t divisor = (extent_in_columns + kMostColumns - 1) / kMostColumns;
  const auto reduced = [&](auto values) {
    return reduce({rows, columns, std::vector<double>(values.begin(), values.end())}, divisor);
  };
  const auto panel = [&](const Grid& grid, double range) { return enlarge(paint(grid, -range, range), factor); };
  const Grid noisy = reduced(field);
  return side_by_side({{panel(noisy, shown_range(noisy.values)), "noisy image"},
                       {panel(reduced(draw), 1), "one draw"},
                       {panel(reduced(mean), 1), "posterior mean"}});
}

}  // namespace poise
