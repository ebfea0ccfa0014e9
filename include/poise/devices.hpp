/// The GPUs of this machine, and what stands in the way of using one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace poise {

/// Where chains are moved on; `automatic` is a GPU where there is one and it will be faster.
enum class Device { cpu, cuda, automatic };

/// One GPU as the driver describes it; sizes are in bytes.
struct CudaDevice {
  std::string name;
  int major = 0;  ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  double bytes = 0.0;  ///< of memory
  double free_bytes = 0.0;
};

/// Those that can be used. Where there are none, `why` says so in a sentence.
[[nodiscard]] std::vector<CudaDevice> cuda_devices(std::string& why);

/// Throws an InputError that says why where no GPU can be used.
void require_cuda();

}  // namespace poise
