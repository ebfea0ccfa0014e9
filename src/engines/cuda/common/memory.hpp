/// Memory on a GPU, for what knows nothing else of CUDA.
#pragma once

#include <cstddef>

namespace poise {

class CudaMemory {
 public:
  /// Throws an InputError where there is no GPU, or where it has too little memory.
  explicit CudaMemory(std::size_t bytes);
  ~CudaMemory();
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  [[nodiscard]] void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

}  // namespace poise
