/// How much the readers of Ising models take.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

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

}  // namespace poise
