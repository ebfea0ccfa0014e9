/// Sets of images: IDX files read and refused, digits drawn, pixels made black and white.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "studies/images/idx.hpp"
#include "support/bytes.hpp"

namespace poise::image_sets_test {

using testing::crc;
using testing::deflated;
using testing::expect_refusals;
using testing::little;
using testing::refusal;
using testing::TemporaryFile;
using testing::TemporaryFolder;
using testing::with;

std::string big(std::uint32_t value) {
  std::string text = little(value, 4);
  std::reverse(text.begin(), text.end());
  return text;
}

std::string gzipped(const std::string& bytes) {
  return "\x1f\x8b\x08" + little(0, 7) + deflated(bytes) + little(crc(bytes), 4) + little(bytes.size(), 4);
}

const std::string kTwoImages =
    big(0x803) + big(2) + big(3) + big(2) + std::string("\x00\xff\x80\x01\x02\x03\x04\x05\x06\x07\x08\x09", 12);

TEST(IdxTest, ReadsPlainAndPacked) {
  const IdxImages images = parse_idx(kTwoImages, "file");
  EXPECT_EQ(images, (IdxImages{2, 3, 2, {0, 255, 128, 1, 2, 3, 4, 5, 6, 7, 8, 9}}));
  EXPECT_EQ(parse_idx(gzipped(kTwoImages), "file"), images);
  const TemporaryFile plain(kTwoImages);
  const TemporaryFile packed(gzipped(kTwoImages));
  EXPECT_EQ(read_idx(plain.path()), images);
  EXPECT_EQ(read_idx(packed.path()), images);
}

TEST(IdxTest, FindsTheTrainingImagesInADirectory) {
  for (const char* name : {"train-images-idx3-ubyte", "train-images-idx3-ubyte.gz", "train-images.idx3-ubyte"}) {
    const TemporaryFolder folder;
    EXPECT_NE(refusal([&] { (void)read_idx(folder.path()); }).find("expected train-images-idx3-ubyte"),
              std::string::npos);
    std::ofstream(folder.file(name), std::ios::binary) << gzipped(kTwoImages);
    EXPECT_EQ(read_idx(folder.path()).count, 2U);
  }
}

TEST(IdxTest, RefusesWhatIsMalformed) {
  const std::string packed = gzipped(kTwoImages);
  const std::string huge = big(0x803) + big(0xffffffff) + big(0xffffffff) + big(0xffffffff);
  expect_refusals(
      {
          {"", "found an empty file"},
          {kTwoImages.substr(0, 15), "found 15 bytes, expected an IDX header of 16"},
          {with(kTwoImages, 0, big(0x801)), "found type 0x08 in 1 dimensions (labels), expected 0x00000803"},
          {with(kTwoImages, 0, big(0xd03)), "found type 0x0d in 3 dimensions, expected 0x00000803"},
          {with(kTwoImages, 0, "\x89PNG"), "found a file that begins with 0x89504e47, expected 0x00000803"},
          {with(kTwoImages, 4, big(0)), "found 0 images of 3 x 2 pixels, expected some"},
          {with(kTwoImages, 12, big(0)), "found 2 images of 3 x 0 pixels, expected some"},
          {with(kTwoImages, 4, big(3)), "found 3 images of 3 x 2 pixels announced in a file too short"},
          {kTwoImages.substr(0, 20), "expected 12 bytes of pixels"},
          {kTwoImages + "xy", "found 2 bytes after the last image, expected none"},
          {huge, "expected at most 4294967296 bytes in all"},
          {gzipped(huge), "expected at most 4294967296 bytes in all"},
          {gzipped(kTwoImages.substr(0, 15)), "found 15 bytes once unpacked"},
          {gzipped(kTwoImages.substr(0, 20)), "found the end before all of 2 images of 3 x 2 pixels"},
          {gzipped(kTwoImages + "x"), "found bytes after the last image"},
          {gzipped(with(kTwoImages, 4, big(100'000'000))), "announced in a file too short"},
          {packed.substr(0, 12), "found the end in the middle of its compressed data"},
          {packed.substr(0, packed.size() - 1), "found the end in the middle of its compressed data"},
          {packed + packed, "bytes after its compressed data, expected none"},
          {with(packed, packed.size() - 8, "crc?"), "found damaged compressed data (incorrect data check)"},
          {with(packed, packed.size() - 4, little(99, 4)), "found damaged compressed data (incorrect length check)"},
          {with(packed, 10, "\x07"), "found damaged compressed data (invalid block type)"},
      },
      [](const std::string& content) { (void)parse_idx(content, "file"); });
  EXPECT_NE(refusal([] { (void)read_idx("no/such/file"); }).find("cannot be opened"), std::string::npos);
}

TEST(IdxTest, MakesPixelsBlackAndWhite) {
  const IdxImages images{1, 2, 2, {0, 127, 128, 255}};
  EXPECT_EQ(binarise(images, 0.5), (std::vector<std::uint8_t>{0, 0, 1, 1}));
  EXPECT_EQ(binarise(images, 0), (std::vector<std::uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(binarise(images, 1), (std::vector<std::uint8_t>{0, 0, 0, 0}));
  // 40000 draws with p = 51/255: the standard deviation of their sum is 80.
  const IdxImages gray{1, 200, 200, std::vector<std::uint8_t>(40000, 51)};
  Rng rng(1, 0);
  const auto bits = binarise_sampled(gray, rng);
  EXPECT_NEAR(std::accumulate(bits.begin(), bits.end(), 0), 8000, 6 * 80);
  const IdxImages ends{1, 1, 2, {0, 255}};
  for (int k = 0; k < 100; ++k) EXPECT_EQ(binarise_sampled(ends, rng), (std::vector<std::uint8_t>{0, 1}));
}

TEST(DigitsTest, DependOnSeedAndPlaceAlone) {
  const IdxImages images = draw_digits(30, 7);
  EXPECT_EQ(images.rows, 28U);
  EXPECT_EQ(images.columns, 28U);
  ASSERT_EQ(images.pixels.size(), 30U * 784);
  EXPECT_EQ(draw_digits(30, 7), images);
  const IdxImages fewer = draw_digits(11, 7);
  EXPECT_TRUE(std::equal(fewer.pixels.begin(), fewer.pixels.end(), images.pixels.begin()));
  EXPECT_NE(draw_digits(30, 8).pixels, images.pixels);
  EXPECT_EQ(draw_digits(0, 7).pixels.size(), 0U);
}

TEST(DigitsTest, LookLikeDigits) {
  constexpr std::size_t count = 500;
  const IdxImages images = draw_digits(count, 3);
  const auto bits = binarise(images, 0.5);
  const double on = std::accumulate(bits.begin(), bits.end(), 0.0) / static_cast<double>(bits.size());
  EXPECT_GT(on, 0.13);
  EXPECT_LT(on, 0.20);
  std::vector<std::vector<double>> mean(10, std::vector<double>(784));
  for (std::size_t i = 0; i < bits.size(); ++i) mean[i / 784 % 10][i % 784] += bits[i] / (count / 10.0);
  const auto difference = [&](std::size_t image, std::size_t digit) {
    double sum = 0;
    for (std::size_t k = 0; k < 784; ++k) sum += std::abs(bits[image * 784 + k] - mean[digit][k]);
    return sum;
  };
  // Each picture alone: some ink, none at the border; and most are nearest to the mean of their own digit.
  std::size_t own = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto first = bits.begin() + static_cast<std::ptrdiff_t>(i * 784);
    EXPECT_GT(std::accumulate(first, first + 784, 0), 30) << i;
    for (std::size_t k = 0; k < 28; ++k) {
      for (const std::size_t at : {k, 27 * 28 + k, 28 * k, 28 * k + 27}) EXPECT_EQ(first[at], 0) << i;
    }
    std::size_t nearest = 0;
    for (std::size_t digit = 1; digit < 10; ++digit) {
      if (difference(i, digit) < difference(i, nearest)) nearest = digit;
    }
    own += nearest == i % 10 ? 1 : 0;
  }
  EXPECT_GT(own, count * 6 / 10);
}

}  // namespace poise::image_sets_test
