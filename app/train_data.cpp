/// From arrays to images: rows of any numbers that can be pixels.
#include "train_data.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include <poise/types.hpp>
#include "models/rbm/number_array.hpp"

namespace poise::app {

namespace {

constexpr std::size_t kMostPixels = 1'000'000;  // of one image

bool is_array_file(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".npy" || ending == ".npz" || ending == ".csv" || ending == ".txt";
}

/// A line of pixels stays a line; what it is a picture of is not known.
IdxImages images_of(const NumberArray& array, const std::string& path) {
  const std::size_t dimensions = array.shape.size();
  const bool is_whole = array.shape.empty() || array.values.empty();
  if ((dimensions != 2 && dimensions != 3) || is_whole) {
    throw InputError(fmt::format("{}: found an array of shape ({}), expected (rows, units) or (images, rows, columns)",
                                 path, fmt::join(array.shape, ", ")));
  }
  IdxImages images;
  images.count = array.shape[0];
  images.rows = dimensions == 3 ? array.shape[1] : 1;
  images.columns = array.shape[dimensions - 1];
  double most = 0.0;
  for (const double value : array.values) {
    most = std::max(most, value);
    if (value >= 0.0 && value <= 255.0) continue;
    throw InputError(fmt::format("{}: found {}, expected numbers from 0 to 1, or whole ones to 255", path, value));
  }
  const bool is_gray = most > 1.0;
  images.pixels.reserve(array.values.size());
  for (const double value : array.values) {
    if (is_gray && value != std::floor(value)) {
      throw InputError(
          fmt::format("{}: found {} beside {}, expected numbers from 0 to 1, or whole ones to 255", path, value, most));
    }
    images.pixels.push_back(static_cast<std::uint8_t>(std::lround(is_gray ? value : 255.0 * value)));
  }
  return images;
}

}  // namespace

IdxImages read_train_data(const std::string& data, std::uint64_t digits, std::uint64_t seed) {
  if (data == "digits") return draw_digits(digits, seed);
  IdxImages images = is_array_file(data) ? images_of(read_number_array(data), data) : read_idx(data);
  if (images.rows * images.columns > kMostPixels) {
    throw InputError(fmt::format("{}: found images of {} x {} pixels, expected at most {} pixels", data, images.rows,
                                 images.columns, kMostPixels));
  }
  return images;
}

}  // namespace poise::app
