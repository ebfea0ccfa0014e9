/// How long each variable has been at each level, counting every step, at O(1) a change.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <poise/simd.hpp>
#include <poise/types.hpp>

namespace poise {

class Occupancy {
 public:
  /// `entries` is the number of (variable, level > 0) pairs; for binary variables, of variables.
  Occupancy(Index variables, Index entries) : last_(variables, 0), time_(entries, 0) {}

  /// The variable had `level` up to and including step `now`, and no longer. `first` is the entry of its level 1.
  POISE_INLINE void leave(Index variable, Index first, Value level, std::uint64_t now) {
    const std::uint32_t spent = static_cast<std::uint32_t>(now) - last_[variable];
    last_[variable] = static_cast<std::uint32_t>(now);
    if (level > 0) time_[first + level - 1] += spent;
  }

  POISE_INLINE void prefetch(Index variable, Index entry) const {
    __builtin_prefetch(last_.data() + variable, 1);
    __builtin_prefetch(time_.data() + entry, 1);
  }

  /// Starts counting at step `now`.
  void reset(std::uint64_t now) {
    std::fill(last_.begin(), last_.end(), static_cast<std::uint32_t>(now));
    std::fill(time_.begin(), time_.end(), 0);
    start_ = now;
  }

  [[nodiscard]] std::uint64_t start() const { return start_; }
  [[nodiscard]] std::uint64_t time(Index entry) const { return time_[entry]; }

 private:
  std::vector<std::uint32_t> last_;  // step of the last change, modulo 2^32; `Chain` settles accounts often enough
  std::vector<std::uint64_t> time_;
  std::uint64_t start_ = 0;
};

}  // namespace poise
