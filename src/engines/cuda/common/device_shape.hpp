/// What plans know of a device.
#pragma once

#include <cstddef>

namespace poise::cuda {

struct DeviceShape {
  unsigned multiprocessors = 1;
  std::size_t shared_per_block = 0;  ///< bytes, the most that a block may ask for
  std::size_t shared_per_multiprocessor = 0;
};

}  // namespace poise::cuda
