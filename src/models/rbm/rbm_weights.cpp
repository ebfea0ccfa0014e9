/// Restricted Boltzmann machines from and to files: which format, and whether the arrays fit together.
#include "models/rbm/rbm_weights.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "base/file.hpp"

namespace poise {
namespace {

static_assert(std::endian::native == std::endian::little && sizeof(float) == 4 && sizeof(double) == 8,
              "numbers are copied between memory and files as they are");

template <class Number>
float number_at(std::string_view bytes, std::size_t k) {
  Number value;
  std::memcpy(&value, bytes.data() + k * sizeof(Number), sizeof(Number));
  // A double that no float can hold becomes infinite here and is refused with the others.
  if (std::abs(value) > std::numeric_limits<float>::max()) return std::numeric_limits<float>::infinity();
  return static_cast<float>(value);
}

/// Row by row, whatever the order in the file.
template <class Number>
std::vector<float> numbers_of(const FileArray& array) {
  const std::size_t size = array.bytes.size() / sizeof(Number);
  std::vector<float> values(size);
  if (array.columns_first && array.shape.size() == 2) {
    const std::size_t rows = array.shape[0];
    const std::size_t columns = array.shape[1];
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        values[i * columns + j] = number_at<Number>(array.bytes, j * rows + i);
      }
    }
  } else {
    for (std::size_t k = 0; k < size; ++k) values[k] = number_at<Number>(array.bytes, k);
  }
  return values;
}

std::vector<float> finite_numbers(const FileArray& array, std::string_view array_name, std::string_view name) {
  std::vector<float> values = array.number_bytes == 4 ? numbers_of<float>(array) : numbers_of<double>(array);
  const auto bad = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (bad != values.end()) {
    refuse_rbm(name, fmt::format("found number {} of '{}' not finite in 32 bits, expected finite numbers",
                                 bad - values.begin() + 1, array_name));
  }
  return values;
}

void check_image(const FileArrays& arrays, RbmWeights& rbm, std::string_view name) {
  if (!arrays.rows && !arrays.columns) return;
  if (!arrays.rows || !arrays.columns) {
    refuse_rbm(name, fmt::format("found '{0}' without '{1}', expected both or none",  //
                                 arrays.rows ? "rows" : "columns", arrays.rows ? "columns" : "rows"));
  }
  const std::int64_t rows = *arrays.rows;
  const std::int64_t columns = *arrays.columns;
  if (rows < 1 || columns < 1 || rows > rbm.visible || columns > rbm.visible || rows * columns != rbm.visible) {
    refuse_rbm(name, fmt::format("found an image of {} x {} pixels, expected as many as the {} visible units", rows,
                                 columns, rbm.visible));
  }
  rbm.rows = static_cast<Index>(rows);
  rbm.columns = static_cast<Index>(columns);
}

void check_sizes(const RbmWeights& rbm) {
  const std::size_t visible = rbm.visible;
  const std::size_t hidden = rbm.hidden;
  const bool image = rbm.rows != 0 || rbm.columns != 0;
  if (visible == 0 || hidden == 0 || rbm.weights.size() != visible * hidden || rbm.visible_bias.size() != visible ||
      rbm.hidden_bias.size() != hidden || (!rbm.visible_rates.empty() && rbm.visible_rates.size() != visible) ||
      (image && std::size_t{rbm.rows} * rbm.columns != visible)) {
    throw std::invalid_argument("write_rbm: there are not as many numbers as the sizes say");
  }
}

}  // namespace

void refuse_rbm(std::string_view name, const std::string& what) { throw InputError(fmt::format("{}: {}", name, what)); }

std::optional<FileArray>* array_named(FileArrays& arrays, std::string_view name) {
  if (name == "weights") return &arrays.weights;
  if (name == "visible_bias") return &arrays.visible_bias;
  if (name == "hidden_bias") return &arrays.hidden_bias;
  if (name == "visible_rates") return &arrays.visible_rates;
  return nullptr;
}

std::string_view bytes_view(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

RbmWeights assemble(const FileArrays& arrays, std::string_view name) {
  if (!arrays.weights || !arrays.visible_bias || !arrays.hidden_bias) {
    const char* missing = !arrays.weights ? "weights" : !arrays.visible_bias ? "visible_bias" : "hidden_bias";
    refuse_rbm(name, fmt::format("found no '{}', expected '{}'", missing, fmt::join(kArrayNames, "', '")));
  }
  const auto& shape = arrays.weights->shape;
  if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0) {
    refuse_rbm(name, fmt::format("found 'weights' of shape {}, expected [hidden, visible]", shape_text(shape)));
  }
  if (shape[0] > std::numeric_limits<Index>::max() || shape[1] > std::numeric_limits<Index>::max()) {
    refuse_rbm(name, fmt::format("found 'weights' of shape {}, expected less than 2^32 units", shape_text(shape)));
  }
  const auto check_bias = [&](const FileArray& bias, std::string_view bias_name, std::uint64_t length) {
    if (bias.shape.size() == 1 && bias.shape[0] == length) return;
    refuse_rbm(name, fmt::format("found '{}' of shape {} beside 'weights' of shape {}, expected [{}], "
                                 "weights being [hidden, visible]",
                                 bias_name, shape_text(bias.shape), shape_text(shape), length));
  };
  check_bias(*arrays.visible_bias, "visible_bias", shape[1]);
  check_bias(*arrays.hidden_bias, "hidden_bias", shape[0]);
  if (arrays.visible_rates) check_bias(*arrays.visible_rates, "visible_rates", shape[1]);
  RbmWeights rbm;
  rbm.visible = static_cast<Index>(shape[1]);
  rbm.hidden = static_cast<Index>(shape[0]);
  check_image(arrays, rbm, name);
  rbm.weights = finite_numbers(*arrays.weights, "weights", name);
  rbm.visible_bias = finite_numbers(*arrays.visible_bias, "visible_bias", name);
  rbm.hidden_bias = finite_numbers(*arrays.hidden_bias, "hidden_bias", name);
  if (arrays.visible_rates) rbm.visible_rates = finite_numbers(*arrays.visible_rates, "visible_rates", name);
  for (const float rate : rbm.visible_rates) {
    if (rate >= 0.0F && rate <= 1.0F) continue;
    refuse_rbm(name, fmt::format("found a unit that is on at a rate of {}, expected a number from 0 to 1", rate));
  }
  return rbm;
}

RbmWeights read_rbm(const std::string& path) {
  const std::string content = read_file(path);
  if (content.empty()) refuse_rbm(path, "found an empty file, expected a safetensors or npz file");
  // A zip file begins with an entry or, when it has none, with the end of its directory. A safetensors file begins with
  // the length of its header, and one of "PK.." would be larger than any header may be.
  const bool zip = content.starts_with("PK\x03\x04") || content.starts_with("PK\x05\x06");
  return zip ? parse_npz(content, path) : parse_safetensors(content, path);
}

void write_rbm(const std::string& path, const RbmWeights& rbm) {
  const auto ends_in = [&](std::string_view ending) {
    return path.size() >= ending.size() &&
           same_letters(std::string_view(path).substr(path.size() - ending.size()), ending);
  };
  const bool npz = ends_in(".npz");
  if (!npz && !ends_in(".safetensors")) {
    refuse_rbm(path, "found a name that ends in neither, expected .safetensors or .npz");
  }
  check_sizes(rbm);
  for (const auto* values : {&rbm.weights, &rbm.visible_bias, &rbm.hidden_bias}) {
    if (!std::all_of(values->begin(), values->end(), [](float value) { return std::isfinite(value); })) {
      throw InputError(fmt::format("Cannot write {}: the weights are not finite.", path));
    }
  }
  write_atomically(path, npz ? npz_bytes(rbm, path) : safetensors_bytes(rbm));
}

}  // namespace poise
