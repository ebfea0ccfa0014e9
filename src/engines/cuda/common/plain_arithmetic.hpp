/// Products and sums of doubles that are never fused.
///
/// A compiler for devices fuses products with what they are added to where it sees both, which is not everywhere: the
/// same numbers would have two sums, and others than on the CPU.
#pragma once

#include "engines/cuda/common/both.hpp"

namespace poise::cuda {

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

}  // namespace poise::cuda
