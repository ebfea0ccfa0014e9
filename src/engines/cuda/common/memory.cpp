/// An array of bytes whose owner is seen as a pointer.
#include "engines/cuda/common/memory.hpp"

#include <poise/devices.hpp>

#include "engines/cuda/common/call.hpp"

namespace poise {

CudaMemory::CudaMemory(std::size_t bytes) {
  require_cuda();
  cuda::check_allocation(cudaMalloc(&data_, bytes), bytes);
}

CudaMemory::~CudaMemory() { static_cast<void>(cudaFree(data_)); }

}  // namespace poise
