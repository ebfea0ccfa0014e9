/// Sums and the like over the threads of a block, or over each warp of it by itself.
#pragma once

#include <cstdint>

namespace poise::cuda {

using Word64 = unsigned long long;

/// Rooms are taken in turns, so that nobody writes where others still read. A single warp needs none.
template <unsigned kThreads>
class Meeting {
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

  struct Rooms {
    Word64 numbers[2][2][kWarps];
  };
  __device__ explicit Meeting(Rooms& rooms) : rooms_(rooms) {}

  template <class... Numbers>
  __device__ void sum(Numbers&... mine) {
    for (unsigned distance = 16; distance > 0; distance /= 2) {
      ((mine += __shfl_xor_sync(kAll, mine, static_cast<int>(distance))), ...);
    }
    if constexpr (kWarps == 1) return;
    unsigned place = 0;
    if (threadIdx.x % 32 == 0) ((at<Numbers>(place++, threadIdx.x / 32) = mine), ...);
    wait();
    place = 0;
    ((mine = sum_of<Numbers>(place++)), ...);
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
  /// Of numbers whose sum over a warp is below 2^32.
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
  __device__ Number& at(unsigned place, unsigned warp) const {
    return *reinterpret_cast<Number*>(&rooms_.numbers[turn_][place][warp]);
  }
  template <class Number>
  __device__ Number sum_of(unsigned place) const {
    Number whole = at<Number>(place, 0);
    for (unsigned warp = 1; warp < kWarps; ++warp) whole += at<Number>(place, warp);
    return whole;
  }

  Rooms& rooms_;
  unsigned turn_ = 0;
};

}  // namespace poise::cuda
