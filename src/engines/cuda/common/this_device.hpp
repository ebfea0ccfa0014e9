/// Asking the present device for its shape.
#pragma once

#include "engines/cuda/common/call.hpp"
#include "engines/cuda/common/device_shape.hpp"

namespace poise::cuda {

inline DeviceShape this_device() {
  int number = 0, multiprocessors = 0, of_block = 0, of_multiprocessor = 0;
  check(cudaGetDevice(&number), "its number was asked for");
  const auto ask = [&](int& value, cudaDeviceAttr what) {
    check(cudaDeviceGetAttribute(&value, what, number), "its size was asked for");
  };
  ask(multiprocessors, cudaDevAttrMultiProcessorCount);
  ask(of_block, cudaDevAttrMaxSharedMemoryPerBlockOptin);
  ask(of_multiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  return {static_cast<unsigned>(multiprocessors), static_cast<std::size_t>(of_block),
          static_cast<std::size_t>(of_multiprocessor)};
}

}  // namespace poise::cuda
