/// Pictures: every kind of PNG and Netpbm, panels and sheets.
#include <algorithm>
#include <cmath>
#include <limits>

#include <png.h>

#include <poise/image.hpp>
#include "support/output.hpp"

namespace poise::png_test {

using namespace poise::testing;

class PngTest : public OutputTest {};

Image ramp(std::size_t width, std::size_t height, std::size_t channels) {
  Image image{width, height, channels, std::vector<std::uint8_t>(width * height * channels)};
  for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<std::uint8_t>(i * 37 % 256);
  return image;
}

Image parse(std::string_view text) { return parse_image(std::as_bytes(std::span(text)), "input"); }

/// A 5 x 4 PNG whose samples are the low bits of a ramp.
std::string encode_png(int color, int depth, int interlace) {
  constexpr int width = 5;
  constexpr int height = 4;
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &out,
      [](png_structp p, png_bytep data, png_size_t size) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<const char*>(data), size);
      },
      nullptr);
  png_set_IHDR(png, info, width, height, depth, color, interlace, PNG_COMPRESSION_TYPE_BASE, PNG_FILTER_TYPE_BASE);
  std::vector<png_color> palette(std::size_t{1} << std::min(depth, 8));
  for (std::size_t i = 0; i < palette.size(); ++i) palette[i] = {static_cast<png_byte>(i), 7, 9};
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
  std::vector<std::vector<png_byte>> rows(height, std::vector<png_byte>(width * 8));
  std::vector<png_bytep> pointers;
  for (std::size_t y = 0; y < rows.size(); ++y) {
    for (std::size_t i = 0; i < rows[y].size(); ++i) rows[y][i] = static_cast<png_byte>(y * 50 + i * 5);
    pointers.push_back(rows[y].data());
  }
  png_set_rows(png, info, pointers.data());
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&png, &info);
  return out;
}

TEST_F(PngTest, RoundTrips) {
  for (const std::size_t channels : {1, 3}) {
    const Image image = ramp(13, 7, channels);
    write_png(path("image.png"), image);
    EXPECT_EQ(read_image(path("image.png")), image);
    EXPECT_EQ(read_image(path("image.png")), image);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(path("")), {}), 1) << "a temporary file was left behind";
}

TEST_F(PngTest, EveryKindOfPng) {
  const std::vector<std::pair<int, std::vector<int>>> kinds{{PNG_COLOR_TYPE_GRAY, {1, 2, 4, 8, 16}},
                                                            {PNG_COLOR_TYPE_GRAY_ALPHA, {8, 16}},
                                                            {PNG_COLOR_TYPE_RGB, {8, 16}},
                                                            {PNG_COLOR_TYPE_RGB_ALPHA, {8, 16}},
                                                            {PNG_COLOR_TYPE_PALETTE, {1, 2, 4, 8}}};
  for (const auto& [color, depths] : kinds) {
    for (const int depth : depths) {
      const Image plain = parse(encode_png(color, depth, PNG_INTERLACE_NONE));
      EXPECT_EQ(plain.width, 5U);
      EXPECT_EQ(plain.height, 4U);
      EXPECT_EQ(plain.channels, (color & PNG_COLOR_MASK_COLOR) != 0 ? 3U : 1U);
      EXPECT_EQ(parse(encode_png(color, depth, PNG_INTERLACE_ADAM7)), plain) << color << " " << depth;
    }
  }
  const Image gray = parse(encode_png(PNG_COLOR_TYPE_GRAY, 8, PNG_INTERLACE_NONE));
  EXPECT_EQ(gray.pixels[1 * 5 + 2], 60);
  const Image deep = parse(encode_png(PNG_COLOR_TYPE_GRAY, 16, PNG_INTERLACE_NONE));
  EXPECT_NEAR(deep.pixels[1 * 5 + 2], 70, 1) << "16-bit samples must be on the scale of 8-bit ones";
  const Image palette = parse(encode_png(PNG_COLOR_TYPE_PALETTE, 8, PNG_INTERLACE_NONE));
  EXPECT_EQ(palette.pixels[3 * (1 * 5 + 2)], 60);
  EXPECT_EQ(palette.pixels[3 * (1 * 5 + 2) + 1], 7);
}

TEST_F(PngTest, Netpbm) {
  const Image bits{5, 2, 1, {0, 255, 0, 255, 0, 255, 255, 255, 255, 0}};
  EXPECT_EQ(parse("P1\n# a comment\n5 2\n10101\n0 0 0\n0 1\n"), bits);
  EXPECT_EQ(parse(std::string_view("P4 5 2\n\xa8\x08", 9)), bits);
  const Image gray{3, 1, 1, {0, 128, 255}};
  EXPECT_EQ(parse("P2 3 1 # width, height\n255\n0 128 255"), gray);
  EXPECT_EQ(parse(std::string_view("P5\n3\n1\n255\n\0\x80\xff", 14)), gray);
  EXPECT_EQ(parse("P2 2 1 4 0 4").pixels, (std::vector<std::uint8_t>{0, 255}));
  EXPECT_EQ(parse(std::string_view("P5 1 1 65535\n\x80\x80", 15)).pixels.front(), 128);
  const Image color{1, 1, 3, {1, 2, 3}};
  EXPECT_EQ(parse("P3 1 1 255 1 2 3"), color);
  EXPECT_EQ(parse(std::string_view("P6 1 1 255\n\1\2\3", 14)), color);
}

TEST_F(PngTest, Sentences) {
  const auto error = [&](std::string_view text) { return sentence([&] { static_cast<void>(parse(text)); }); };
  expect_sentence(sentence([&] { static_cast<void>(read_image(path("none.png"))); }), {"none.png", "No such file"});
  expect_sentence(sentence([&] { static_cast<void>(read_image(path(""))); }), {"directory"});
  expect_sentence(error(""), {"input is empty"});
  expect_sentence(error("GIF89a"), {"neither a PNG nor a PBM"});
  expect_sentence(error("\xff\xd8\xff\xe0"), {"JPEG"});
  expect_sentence(error("P2 3 1 255 1 2"), {"cut off"});
  expect_sentence(error("P5 300 100 255\nabc"), {"cut off"});
  expect_sentence(error("P2 0 1 255"), {"empty image of 0 x 1"});
  expect_sentence(error("P2 100000 100000 255"), {"100000 x 100000", "at most"});
  expect_sentence(error("P2 4000000000 4000000000 255"), {"at most"});
  expect_sentence(error("P2 99999999999999999999 1 255"), {"too large"});
  expect_sentence(error("P2 1 1 70000 1"), {"70000", "65535"});
  expect_sentence(error("P2 1 1 7 9"), {"sample of 9", "7"});
  expect_sentence(error("P2 x 1 7 9"), {"byte 3", "width"});
  expect_sentence(error("P1 2 1 12"), {"0 or 1"});
  std::string huge = encode_png(PNG_COLOR_TYPE_GRAY, 8, PNG_INTERLACE_NONE);
  expect_sentence(error(huge.substr(0, 40)), {"damaged PNG"});
  expect_sentence(sentence([&] { write_png(path("no/such.png"), ramp(2, 2, 1)); }), {"such.png", "No such file"});
  EXPECT_THROW(write_png(path("bad.png"), Image{2, 2, 1, {1}}), std::invalid_argument);
}

TEST_F(PngTest, DamageNeverCrashes) {
  for (const int color : {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_RGB_ALPHA, PNG_COLOR_TYPE_PALETTE}) {
    const std::string whole = encode_png(color, 8, PNG_INTERLACE_ADAM7);
    const auto survives = [](const std::string& bytes) {
      try {
        static_cast<void>(parse(bytes));
      } catch (const InputError& error) {
        EXPECT_EQ(std::string(error.what()).back(), '.');
      }
    };
    for (std::size_t size = 0; size < whole.size(); size += 10) survives(whole.substr(0, size));
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const int bit : {1, 8, 0x80, 0xff}) {
        std::string flipped = whole;
        flipped[at] = static_cast<char>(flipped[at] ^ bit);
        survives(flipped);
      }
    }
  }
}

TEST_F(PngTest, ScalingAndColors) {
  const Image small{2, 1, 1, {3, 9}};
  EXPECT_EQ(enlarge(small, 2), (Image{4, 2, 1, {3, 3, 9, 9, 3, 3, 9, 9}}));
  EXPECT_EQ(to_gray(to_rgb(small)), small);
  const Grid grid{2, 3, {1, 2, 3, 5, 6, 9}};
  EXPECT_EQ(reduce(grid, 2).values, (std::vector<double>{3.5, 6}));
  EXPECT_EQ(reduce(grid, 1).values, grid.values);
  EXPECT_EQ(gray_color(-5, 0, 1), (Color{0, 0, 0}));
  EXPECT_EQ(gray_color(1, 0, 1), (Color{255, 255, 255}));
  EXPECT_EQ(gray_color(1, 1, 1), gray_color(NAN, 0, 1));
  const Color middle = diverging_color(0, -1, 1);
  EXPECT_GT(middle.red, 240);
  EXPECT_GT(diverging_color(-1, -1, 1).blue, diverging_color(-1, -1, 1).red);
  EXPECT_GT(diverging_color(1, -1, 1).red, diverging_color(1, -1, 1).blue);
  EXPECT_EQ(diverging_color(INFINITY, -1, 1), diverging_color(1, -1, 1));
}

TEST_F(PngTest, TextStaysInside) {
  Image image{20, 10, 1, std::vector<std::uint8_t>(200, 255)};
  draw_text(image, "MUCH too long a text \x01\xff", 5, 5, 3);
  EXPECT_EQ(image.pixels.size(), 200U);
  EXPECT_LT(*std::min_element(image.pixels.begin(), image.pixels.end()), 60);
  EXPECT_GT(text_width("mm", 2), text_width("ii", 2));
  EXPECT_EQ(text_width("", 2), 0U);
}

TEST_F(PngTest, SegmentationPanels) {
  for (const auto& [rows, columns] : std::vector<std::pair<std::size_t, std::size_t>>{
           {30, 30}, {1, 1}, {500, 640}, {800, 1500}, {1, 2000}, {3000, 2}}) {
    const std::size_t sites = rows * columns;
    const Image image = segmentation_panels(rows, columns, std::vector<double>(sites, NAN),
                                            std::vector<std::int8_t>(sites, -1), std::vector<double>(sites, 0.5));
    EXPECT_EQ(image.channels, 3U);
    EXPECT_LE(image.width, 2200U);
    EXPECT_LE(image.height, 1500U);
    if (rows == 30) {
      EXPECT_NEAR(static_cast<double>(image.width), 1000, 60);
    }
    EXPECT_EQ(image.pixels.size(), image.width * image.height * 3);
  }
  const std::vector<double> two(2);
  const std::vector<std::int8_t> one(1);
  EXPECT_THROW(static_cast<void>(segmentation_panels(1, 2, two, one, two)), std::invalid_argument);
}

}  // namespace poise::png_test
