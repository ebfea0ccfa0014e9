/// What the readers of Ising models share: lines of words, the numbers in them, and limits of size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/extend/base/spec.hpp>
#include "base/file.hpp"

namespace poise {

constexpr std::int64_t kMaxSide = 65535;
constexpr std::int64_t kMaxSites = std::int64_t{1} << 28;
constexpr std::int64_t kMaxVariables = 100'000'000;

/// A number of a variable, or of variables, claims memory for all below it, so that it must be plausible for the bytes
/// there are. A variable with an edge or a term takes more than one of them; a million may have none.
constexpr std::int64_t kMaxIsolated = 1'000'000;
constexpr std::int64_t max_variables(std::size_t file_bytes) {
  return std::min(kMaxVariables, kMaxIsolated + static_cast<std::int64_t>(file_bytes));
}
constexpr const char* kMaxVariablesReason = ", as a file may have a million more variables than bytes";

constexpr std::int64_t kMaxEdges = std::numeric_limits<std::int32_t>::max();
/// Fields and couplings stay below this, so that log p of any state stays finite.
constexpr double kLargest = 1e100;

constexpr std::int64_t kMaxGridSites = std::int64_t{1} << 24;  // of three dimensions and more: edges are listed

/// Reads the key `size`, N or ROWSxCOLUMNS or more sides, as at least two sides; nothing where it is not given.
std::optional<std::vector<Index>> read_lattice_sides(SpecReader& reader, std::int64_t max_sites);

/// Reads the inverse temperature from the key `beta`, or from `T`, which is one over it; 1 where neither is given.
double read_beta(SpecReader& reader, double least, double most);

/// The lines of a text that hold something besides blanks and comments, cut into words.
class Lines {
 public:
  explicit Lines(std::string_view content) : rest_(without_byte_order_mark(content)) {}

  bool next();

  std::size_t number = 0;                             ///< of the present line, from 1
  std::vector<std::string_view> words;                ///< of the present line
  std::function<void(std::string_view)> see_comment;  ///< called, when given, with what follows a '#'

 private:
  /// Words end at blanks or at one comma; nothing between two commas, or after the last, is an empty word.
  void split(std::string_view line);

  std::string_view rest_;
};

/// A finite number of at most kLargest in size.
double real_at(std::string_view word, std::string_view name, std::size_t line);

/// Where an integer may lie and what it is called in a message.
struct Expected {
  std::string_view noun;
  std::int64_t min;
  std::int64_t max;
  std::string_view reason = {};  ///< for the upper bound, to end the message with
};

std::int64_t integer_at(std::string_view word, const Expected& one, std::string_view name, std::size_t line);

}  // namespace poise
