/// Time that counts in comparisons of speed.
#pragma once

#include <ctime>

namespace poise::reproduction {

/// Seconds of processor time of this thread: what others do meanwhile on the machine does not count.
[[nodiscard]] inline double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace poise::reproduction
