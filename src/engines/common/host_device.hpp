/// Code that is compiled for a device and for the host alike (C++17): its macros, and arithmetic that is the same on
/// both.
#pragma once

#include <cstddef>

#ifdef __CUDACC__
#define POISE_BOTH __host__ __device__ __forceinline__
#define POISE_UNROLL _Pragma("unroll")
#else
#define POISE_BOTH inline
#define POISE_UNROLL
#endif

namespace poise::cuda {

// Products and sums of doubles that are never fused. A compiler for devices fuses products with what they are added to
// where it sees both, which is not everywhere: the same numbers would have two sums, and others than on the CPU.

POISE_BOTH double plain_product(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}
POISE_BOTH double plain_sum(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}

/// What plans know of a device.
struct DeviceShape {
  unsigned multiprocessors = 1;
  std::size_t shared_per_block = 0;  ///< bytes, the most that a block may ask for
  std::size_t shared_per_multiprocessor = 0;
};

}  // namespace poise::cuda
