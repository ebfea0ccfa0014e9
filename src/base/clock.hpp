/// The clock that work is timed by.
#pragma once

#include <chrono>

namespace poise {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace poise
