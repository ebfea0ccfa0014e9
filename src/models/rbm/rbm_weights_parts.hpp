/// What the two formats of restricted Boltzmann machines share: arrays with shapes, and what they must be together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/rbm/rbm_weights.hpp"

namespace poise {

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

/// Product of the shape times `number_bytes`; nothing where it is more than 64 bits hold.
std::optional<std::uint64_t> bytes_of(const std::vector<std::uint64_t>& shape, std::uint64_t number_bytes);

/// "[3, 4]"
std::string shape_text(const std::vector<std::uint64_t>& shape);

/// Checks that the arrays are there and fit together, and converts them.
RbmWeights assemble(const FileArrays& arrays, std::string_view name);

/// The lowest `count` bytes of a number, the lowest first, as both formats have it.
std::string little_endian(std::uint64_t value, std::size_t count);
std::uint64_t from_little_endian(std::string_view bytes);

/// The numbers as they lie in memory, which is how both formats have them.
std::string_view bytes_view(const std::vector<float>& values);

}  // namespace poise
