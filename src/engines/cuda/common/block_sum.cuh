/// The sum of a number of every thread of a block, in one order.
#pragma once

namespace poise::cuda {

template <unsigned kThreads>
struct BlockSum {
  static constexpr unsigned kWarp = 32;
  double rooms[kThreads / kWarp];  // in shared memory

  /// All threads call it, and all get the sum.
  __device__ double operator()(double value) {
    for (unsigned far = kWarp / 2; far > 0; far /= 2) value += __shfl_xor_sync(~0U, value, far);
    if (threadIdx.x % kWarp == 0) rooms[threadIdx.x / kWarp] = value;
    __syncthreads();
    double sum = 0.0;
    for (const double room : rooms) sum += room;
    __syncthreads();
    return sum;
  }
};

}  // namespace poise::cuda
