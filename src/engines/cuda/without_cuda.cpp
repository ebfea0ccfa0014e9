/// What a build without CUDA says.
#include <poise/devices.hpp>
#include "engines/cuda/common/memory.hpp"

#ifndef POISE_CUDA

#include <poise/extend/base/spec.hpp>

namespace poise {

std::vector<CudaDevice> cuda_devices(std::string& why) {
  why = "this build of poise is without CUDA: build it where nvcc (12 or newer) is installed";
  return {};
}

void require_cuda() {
  std::string why;
  (void)cuda_devices(why);
  throw InputError(why);
}

CudaMemory::CudaMemory(std::size_t) { require_cuda(); }
CudaMemory::~CudaMemory() = default;

}  // namespace poise

#endif
