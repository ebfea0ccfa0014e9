/// A warp whose lanes are threads: device code of src/cuda, with the operations by which lanes talk to each other.
#pragma once

#include <array>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#ifndef __device__  // as the headers of CUDA have it for a compiler that is not theirs
#define __device__
#endif

// The names are those of the device. NOLINTBEGIN(bugprone-reserved-identifier)

namespace poise::cuda {

struct double2 {
  double x, y;
};

/// What the lanes of the one warp that there is hand each other. A lane that does not come, or comes for something else
/// than the others, is waited for.
class HostWarp {
 public:
  static constexpr unsigned kSize = 32;

  /// Calls work(lane) on all lanes at once.
  template <class Work>
  static void run(const Work& work) {
    std::vector<std::jthread> lanes;
    for (unsigned lane = 0; lane < kSize; ++lane) {
      lanes.emplace_back([&work, lane] {
        own_lane = lane;
        work(lane);
      });
    }
  }

  static void meet() { together.arrive_and_wait(); }

  /// The value of the lane that `from` gives for this one.
  template <class T, class From>
  static T take(T value, const From& from) {
    std::memcpy(&values[own_lane], &value, sizeof value);
    meet();
    T out;
    std::memcpy(&out, &values[from(own_lane)], sizeof out);
    meet();
    return out;
  }

  inline static thread_local unsigned own_lane = 0;

 private:
  inline static std::barrier<> together{kSize};
  inline static std::array<std::uint64_t, kSize> values{};
};

inline void __syncwarp() { HostWarp::meet(); }

template <class T>
T __shfl_sync(unsigned, T value, int from) {
  return HostWarp::take(value, [&](unsigned) { return static_cast<unsigned>(from) % HostWarp::kSize; });
}
template <class T>
T __shfl_xor_sync(unsigned, T value, unsigned with) {
  return HostWarp::take(value, [&](unsigned lane) { return lane ^ with; });
}
template <class T>
T __shfl_up_sync(unsigned, T value, unsigned by) {
  return HostWarp::take(value, [&](unsigned lane) { return lane >= by ? lane - by : lane; });
}
inline unsigned __ballot_sync(unsigned, bool vote) {
  unsigned mine = vote ? 1U << HostWarp::own_lane : 0U;
  for (unsigned with = 1; with < HostWarp::kSize; with *= 2) mine |= __shfl_xor_sync(~0U, mine, with);
  return mine;
}

template <class T>
T __ldg(const T* from) {
  return *from;
}
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits)); }
// One lane adds here, and nobody else.
template <class T>
void atomicAdd(T* to, T value) {
  *to += value;
}
template <class T>
void atomicXor(T* to, T value) {
  *to ^= value;
}

}  // namespace poise::cuda

// NOLINTEND(bugprone-reserved-identifier)
