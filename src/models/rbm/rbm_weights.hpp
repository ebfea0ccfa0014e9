/// The numbers of a restricted Boltzmann machine, from and to files: safetensors and NumPy's npz.
///
/// Both hold `weights` of shape [hidden, visible], `visible_bias` [visible] and `hidden_bias` [hidden], in 32 or 64
/// bits; maybe `visible_rates` [visible], how often these are on in the data. Where the
/// visible units are an image, its `rows` and `columns` are strings in the metadata of a safetensors file and integers
/// without dimensions in an npz file. Whatever else a file holds is left alone. What is wrong with a file is an
/// InputError that names it; no size that it declares is believed before it is known to be long enough.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/types.hpp>
#include "base/npz.hpp"

namespace poise {

/// log p(v) = visible_bias . v + sum_j softplus(hidden_bias[j] + sum_i weights[j * visible + i] v[i]) + constant, with
/// v[i] in {0, 1}.
struct RbmWeights {
  Index visible = 0;
  Index hidden = 0;
  std::vector<float> weights;
  std::vector<float> visible_bias;
  std::vector<float> hidden_bias;
  Index rows = 0;  ///< of the image that the visible units are; rows and columns are 0 when they are none
  Index columns = 0;
  /// How often visible units are on in the data, between 0 and 1; empty where it is not known. Tempering starts from
  /// them.
  std::vector<float> visible_rates = {};
  /// A unit that the data never turn on, or off, is taken to be on, or off, this often.
  static constexpr double kRarest = 1e-3;

  [[nodiscard]] bool operator==(const RbmWeights&) const = default;
};

/// Reads a `.safetensors` or `.npz` file, told apart by content.
[[nodiscard]] RbmWeights read_rbm(const std::string& path);

/// The same from memory; `name` stands for the file in errors.
[[nodiscard]] RbmWeights parse_safetensors(std::string_view content, std::string_view name);
[[nodiscard]] RbmWeights parse_npz(std::string_view content, std::string_view name);

/// Writes in 32 bits, in the format that the ending of the path says, beside the path and renames: the path never holds
/// half of it. Another ending, numbers that are not finite, or a place that cannot be written is an InputError.
void write_rbm(const std::string& path, const RbmWeights& rbm);

/// What `write_rbm` writes. More numbers than an npz file takes, about 2^30, are an InputError.
[[nodiscard]] std::string safetensors_bytes(const RbmWeights& rbm);
[[nodiscard]] std::string npz_bytes(const RbmWeights& rbm, std::string_view name);

/// An array as a file has it, still in the file's bytes, the lowest byte of each number first.
struct FileArray {
  std::vector<std::uint64_t> shape;
  std::size_t number_bytes = 4;  ///< 4 or 8: a float or a double
  bool columns_first = false;    ///< of a matrix: stored column by column
  std::string_view bytes;        ///< as many as the shape calls for
};

struct FileArrays {
  std::optional<FileArray> weights;
  std::optional<FileArray> visible_bias;
  std::optional<FileArray> hidden_bias;
  std::optional<FileArray> visible_rates;  ///< may be missing
  std::optional<std::int64_t> rows;
  std::optional<std::int64_t> columns;
};

inline constexpr std::array<std::string_view, 3> kArrayNames = {"weights", "visible_bias", "hidden_bias"};

[[noreturn]] void refuse_rbm(std::string_view name, const std::string& what);

/// The member of that name, or nothing for other names.
std::optional<FileArray>* array_named(FileArrays& arrays, std::string_view name);

/// Checks that the arrays are there and fit together, and converts them.
RbmWeights assemble(const FileArrays& arrays, std::string_view name);

/// The numbers as they lie in memory, which is how both formats have them.
std::string_view bytes_view(const std::vector<float>& values);

}  // namespace poise
