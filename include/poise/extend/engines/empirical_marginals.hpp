/// How long each variable has been at each level, counting every step, at O(1) a change.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <poise/extend/base/simd.hpp>
#include <poise/types.hpp>

namespace poise {

class EmpiricalMarginals {
 public:
  /// `entries` is the number of (variable, level > 0) pairs; for binary variables, of variables.
  explicit EmpiricalMarginals(Index entries) : entries_(entries) {}

  /// A variable had `level` up to and including step `now`, and no longer. `first` is the entry of its level 1.
  POISE_INLINE void leave(Index first, Value level, std::uint64_t now) {
    const std::uint32_t spent = static_cast<std::uint32_t>(now) - entries_[first].last;
    entries_[first].last = static_cast<std::uint32_t>(now);
    if (level > 0) entries_[first + level - 1].time += spent;
  }

  /// For binary variables that were all counted up to now: adds the steps up to `now` at level 1 since then.
  void add(std::span<const std::uint32_t> steps, std::uint64_t now) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      entries_[i].time += steps[i];
      entries_[i].last = static_cast<std::uint32_t>(now);
    }
  }

  POISE_INLINE void prefetch(Index entry) const { __builtin_prefetch(entries_.data() + entry, 1); }

  /// Starts counting at step `now`.
  void reset(std::uint64_t now) {
    std::fill(entries_.begin(), entries_.end(), Entry{0, static_cast<std::uint32_t>(now)});
    start_ = now;
  }

  template <class A>
  void archive(A& archive) {
    archive(entries_, start_);
  }

  [[nodiscard]] std::uint64_t start() const { return start_; }
  [[nodiscard]] std::uint64_t time(Index entry) const { return entries_[entry].time; }
  /// Steps up to `now` that a variable has been at its present level and `time` does not count yet.
  [[nodiscard]] std::uint32_t since_change(Index first, std::uint64_t now) const {
    return static_cast<std::uint32_t>(now) - entries_[first].last;
  }

 private:
  /// Twelve bytes, so that a change touches one place in memory.
  struct __attribute__((packed, aligned(4))) Entry {
    std::uint64_t time;  // steps at this level
    std::uint32_t last;  // step of the variable's last change modulo 2^32, in the entry of its level 1
  };

  std::vector<Entry> entries_;
  std::uint64_t start_ = 0;
};

}  // namespace poise
