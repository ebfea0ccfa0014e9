/// How much of the machine's memory draws may take.
#pragma once

#include <unistd.h>

#include <poise/run.hpp>

namespace poise {

/// What the options say or a third, in bytes: draws are held once, and a second time while they are handed over.
inline double memory_for_draws(const RunOptions& options) {
  if (options.memory > 0.0) return options.memory;
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE)) / 3.0;
}

}  // namespace poise
