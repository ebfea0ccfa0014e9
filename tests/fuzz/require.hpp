/// What a fuzz target holds a reader to.
#pragma once

#include <cstdlib>

/// Ends the run, as a finding, where the property does not hold.
inline void require(bool property) {
  if (!property) std::abort();
}
