/// Launches that overlap with the end of the one before, where devices can do so (compute capability 9.0).
#pragma once

#include <cstddef>

#include <cuda_runtime.h>

namespace poise::cuda {

/// In a kernel, when all its blocks have come here: the next one may begin.
__device__ inline void let_the_next_begin() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}
/// In a kernel that was launched so: what the one before has written is there.
__device__ inline void wait_for_the_end_of_the_one_before() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}
/// The usual way, before a kernel touches what the one before has written. The next one may begin before that one ends.
__device__ inline void wait_for_the_one_before() {
  let_the_next_begin();
  wait_for_the_end_of_the_one_before();
}

/// How much of a multiprocessor's memory is shared, in percent, while blocks of a kernel are there. Blocks that want
/// different shares are not there at the same time, so kernels that are to overlap want the same.
template <class... Parameters>
void prefer_shared_memory(void (*kernel)(Parameters...), int percent) {
  const cudaError_t status = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                  cudaFuncAttributePreferredSharedMemoryCarveout, percent);
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());  // a wish: nothing is lost where it is not granted
}

struct LaunchShape {
  dim3 blocks;
  dim3 threads;
  std::size_t shared;  ///< bytes
  cudaStream_t stream;
};

template <class... Parameters, class... Arguments>
void launch_after(void (*kernel)(Parameters...), const LaunchShape& shape, const Arguments&... arguments) {
  static const bool overlaps = [] {
    int device = 0, major = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 9;
  }();
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = shape.blocks;
  config.blockDim = shape.threads;
  config.dynamicSmemBytes = shape.shared;
  config.stream = shape.stream;
  config.attrs = &attribute;
  config.numAttrs = overlaps ? 1 : 0;
  // What went wrong is found by whoever asks for the last error.
  static_cast<void>(cudaLaunchKernelEx(&config, kernel, arguments...));
}

}  // namespace poise::cuda
