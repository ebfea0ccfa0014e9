/// How much the readers of Ising models take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace poise {

constexpr std::int64_t kMaxSide = 65535;
constexpr std::int64_t kMaxSites = std::int64_t{1} << 28;
constexpr std::int64_t kMaxVariables = 100'000'000;
constexpr std::int64_t kMaxEdges = std::numeric_limits<std::int32_t>::max();
/// Fields and couplings stay below this, so that log p of any state stays finite.
constexpr double kLargest = 1e100;

}  // namespace poise
