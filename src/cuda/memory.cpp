/// An array of bytes whose owner is seen as a pointer.
#include <poise/cuda/memory.hpp>

#include <poise/cuda/devices.hpp>

#include "call.hpp"

namespace poise {

CudaMemory::CudaMemory(std::size_t bytes) {
  require_cuda();
  cuda::check_allocation(cudaMalloc(&data_, bytes), bytes);
}

CudaMemory::~CudaMemory() { static_cast<void>(cudaFree(data_)); }

}  // namespace poise
