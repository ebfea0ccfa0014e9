/// The GPUs that the CUDA runtime knows, and memory on one.
#include "engines/cuda/engines.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include "engines/cuda/common/call.hpp"

namespace poise {

namespace {

constexpr int kLeastCapability = 75;

/// Puts the present device back, which belongs to the whole process: user code may have chosen another one.
class KeepsDevice {
 public:
  KeepsDevice() { known_ = cudaGetDevice(&number_) == cudaSuccess; }
  ~KeepsDevice() {
    if (known_) static_cast<void>(cudaSetDevice(number_));
  }
  KeepsDevice(const KeepsDevice&) = delete;
  KeepsDevice& operator=(const KeepsDevice&) = delete;

 private:
  int number_ = 0;
  bool known_ = false;
};

}  // namespace

std::vector<CudaDevice> find_cuda_devices(std::string& why) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    why = "no GPU can be used: there is no NVIDIA driver, or it is older than this build of poise needs";
    return {};
  }
  if (status != cudaSuccess || count == 0) {
    why = status == cudaSuccess || status == cudaErrorNoDevice
              ? "there is no NVIDIA GPU in this machine"
              : fmt::format("no GPU can be used: {}", cudaGetErrorString(status));
    return {};
  }
  const KeepsDevice keeps;
  std::vector<CudaDevice> devices;
  for (int number = 0; number < count; ++number) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, number) != cudaSuccess) continue;
    if (properties.major * 10 + properties.minor < kLeastCapability) continue;
    CudaDevice device;
    device.name = properties.name;
    device.major = properties.major;
    device.minor = properties.minor;
    device.multiprocessors = properties.multiProcessorCount;
    device.bytes = static_cast<double>(properties.totalGlobalMem);
    std::size_t left = 0, all = 0;
    if (cudaSetDevice(number) == cudaSuccess && cudaMemGetInfo(&left, &all) == cudaSuccess) {
      device.free_bytes = static_cast<double>(left);
    }
    devices.push_back(device);
  }
  if (devices.empty()) {
    why = fmt::format("the GPUs of this machine are too old: compute capability {}.{} is the least",
                      kLeastCapability / 10, kLeastCapability % 10);
  }
  return devices;
}

std::shared_ptr<void> allocate_on_cuda(std::size_t bytes) {
  void* data = nullptr;
  cuda::check_allocation(cudaMalloc(&data, bytes), bytes);
  return {data, [](void* kept) { static_cast<void>(cudaFree(kept)); }};
}

}  // namespace poise
