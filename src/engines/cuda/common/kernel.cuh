/// What kernels share: launches that overlap, reductions over a warp or a thread block, products of bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

namespace poise::cuda {

// Launches that overlap with the end of the one before, where devices can do so (compute capability 9.0).

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

/// As many blocks as have a thread for each item.
inline unsigned blocks_for(std::size_t items, unsigned threads) {
  return static_cast<unsigned>((items + threads - 1) / threads);
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
  // An error is found by the next call that asks for the last error.
  static_cast<void>(cudaLaunchKernelEx(&config, kernel, arguments...));
}

using Word64 = unsigned long long;

/// Rooms are taken in turns, so that no thread writes where others still read. A single warp needs none.
template <unsigned kThreads>
class Reduction {
 public:
  __device__ static void wait() {
    if constexpr (kThreads == 32) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }

  static constexpr unsigned kWarps = kThreads / 32;
  /// What was written before a sum, everybody sees after it: several warps have waited for each other there.
  __device__ static void wait_after_sum() {
    if constexpr (kWarps == 1) wait();
  }

  /// Whether any thread says so. What was written before, everybody sees after it.
  __device__ static bool any(bool mine) {
    if constexpr (kWarps == 1) {
      const bool some = __any_sync(kAll, mine) != 0;
      wait();
      return some;
    } else {
      return __syncthreads_or(mine ? 1 : 0) != 0;
    }
  }

  struct Rooms {
    Word64 numbers[2][2][kWarps];
  };
  __device__ explicit Reduction(Rooms& rooms) : rooms_(rooms) {}

  template <class... Numbers>
  __device__ void sum(Numbers&... mine) {
    for (unsigned distance = 16; distance > 0; distance /= 2) {
      ((mine += __shfl_xor_sync(kAll, mine, static_cast<int>(distance))), ...);
    }
    if constexpr (kWarps == 1) return;
    unsigned slot = 0;
    if (threadIdx.x % 32 == 0) ((at<Numbers>(slot++, threadIdx.x / 32) = mine), ...);
    wait();
    slot = 0;
    ((mine = sum_of<Numbers>(slot++)), ...);
    turn_ ^= 1U;
  }

  __device__ float most(float mine) {
    for (unsigned distance = 16; distance > 0; distance /= 2) {
      mine = fmaxf(mine, __shfl_xor_sync(kAll, mine, static_cast<int>(distance)));
    }
    if constexpr (kWarps == 1) return mine;
    if (threadIdx.x % 32 == 0) at<float>(0, threadIdx.x / 32) = mine;
    __syncthreads();
    for (unsigned warp = 0; warp < kWarps; ++warp) mine = fmaxf(mine, at<float>(0, warp));
    turn_ ^= 1U;
    return mine;
  }

  struct Sums {
    Word64 before;  ///< over all threads before this one
    Word64 whole;   ///< over all of them
  };
  /// Scans numbers whose sum over a warp is below 2^32.
  __device__ Sums scan(unsigned mine) {
    unsigned inclusive = mine;
    for (unsigned distance = 1; distance < 32; distance *= 2) {
      const unsigned earlier = __shfl_up_sync(kAll, inclusive, distance);
      if (threadIdx.x % 32 >= distance) inclusive += earlier;
    }
    if constexpr (kWarps == 1) return {inclusive - mine, __shfl_sync(kAll, inclusive, 31)};
    if (threadIdx.x % 32 == 31) at<unsigned>(0, threadIdx.x / 32) = inclusive;
    __syncthreads();
    Sums out{inclusive - mine, 0};
    for (unsigned warp = 0; warp < kWarps; ++warp) {
      const unsigned sum = at<unsigned>(0, warp);
      if (warp < threadIdx.x / 32) out.before += sum;
      out.whole += sum;
    }
    turn_ ^= 1U;
    return out;
  }

 private:
  static constexpr unsigned kAll = 0xffffffffU;

  template <class Number>
  __device__ Number& at(unsigned slot, unsigned warp) const {
    return *reinterpret_cast<Number*>(&rooms_.numbers[turn_][slot][warp]);
  }
  template <class Number>
  __device__ Number sum_of(unsigned slot) const {
    Number whole = at<Number>(slot, 0);
    for (unsigned warp = 1; warp < kWarps; ++warp) whole += at<Number>(slot, warp);
    return whole;
  }

  Rooms& rooms_;
  unsigned turn_ = 0;
};

// The sum of a number of every thread of a block, in one order.

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

// Products of bytes on tensor cores, summed in integers.

/// Sixteen rows of 32 numbers times eight columns of them. Lane l has of the rows l / 4 and l / 4 + 8 and of the column
/// l / 4 four numbers from 4 * (l % 4) on, and those sixteen further, a byte with a sign each: rows in the order row,
/// row + 8, and both again further on. Of the sums it has the columns 2 * (l % 4) and the next, in both rows.
__device__ inline void multiply_bytes(std::int32_t (&sums)[4], const std::uint32_t (&rows)[4],
                                      const std::uint32_t (&columns)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(columns[0]), "r"(columns[1]));
#else
  // The same in quarters: eight rows of sixteen numbers.
  const auto quarter = [](std::int32_t& first, std::int32_t& second, std::uint32_t a, std::uint32_t b) {
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+r"(first), "+r"(second)
        : "r"(a), "r"(b));
  };
  quarter(sums[0], sums[1], rows[0], columns[0]);
  quarter(sums[0], sums[1], rows[2], columns[1]);
  quarter(sums[2], sums[3], rows[1], columns[0]);
  quarter(sums[2], sums[3], rows[3], columns[1]);
#endif
}

}  // namespace poise::cuda
