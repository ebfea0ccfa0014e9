/// How often the bits of a state were set, counted on the device: in planes of bits first, then in numbers of 32 bits,
/// and on the host beyond that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engines/cuda/bits/bit_kernels.hpp"
#include "engines/cuda/common/call.hpp"

namespace poise::cuda {

/// Bits are numbered word by word.
class BitCounts {
 public:
  explicit BitCounts(std::size_t words) : words_(words) {}

  /// From here on everything is counted.
  void reset() {
    if (planes_.empty()) planes_ = Array<std::uint32_t>(words_ * kPlanes);
    if (pending_.empty()) pending_ = Array<std::uint32_t>(words_ * kPlanes);
    planes_.clear();
    pending_.clear();
    spilled_ = {};
    earlier_.clear();
    states_ = 0;
    spilled_states_ = 0;
  }

  /// Makes room for so many states more, kMostStates at most. Says how many are in the planes then.
  std::uint32_t make_room(std::uint32_t states) {
    if (states_ + states > kMostStates) spill();
    return states_;
  }
  /// That many were counted, by sweeps or by launch_count.
  void note(std::uint32_t states) { states_ += states; }
  [[nodiscard]] PlanesView view() const { return {planes_.data(), pending_.data(), words_, states_}; }

  /// Of the bits first, first + step and so on.
  [[nodiscard]] std::vector<std::uint64_t> get(std::size_t first, std::size_t step, std::size_t count) const {
    const Array<std::uint64_t> out(count);
    launch_gather(view(), {first, step, count, spilled_.data()}, out.data());
    check_launch("counts were gathered");
    std::vector<std::uint64_t> counts(count);
    out.download(counts);
    if (earlier_.empty()) return counts;
    for (std::size_t k = 0; k < count; ++k) counts[k] += earlier_[first + k * step];
    return counts;
  }
  void set(std::size_t first, std::size_t step, std::span<const std::uint64_t> counts) {
    if (states_ > 0) spill();
    earlier_.resize(words_ * kWordChains, 0);
    if (!spilled_.empty()) set_aside();
    for (std::size_t k = 0; k < counts.size(); ++k) earlier_[first + k * step] = counts[k];
  }

 private:
  void spill() {
    if (spilled_.empty()) {
      spilled_ = Array<std::uint32_t>(words_ * kWordChains);
      spilled_.clear();
    }
    if (spilled_states_ > std::numeric_limits<std::uint32_t>::max() - states_) set_aside();
    launch_spill(view(), spilled_.data());
    check_launch("counts were added up");
    planes_.clear();
    spilled_states_ += states_;
    states_ = 0;
  }

  /// Before numbers of 32 bits overflow.
  void set_aside() {
    std::vector<std::uint32_t> now(spilled_.size());
    spilled_.download(now);
    earlier_.resize(now.size(), 0);
    for (std::size_t k = 0; k < now.size(); ++k) earlier_[k] += now[k];
    spilled_.clear();
    spilled_states_ = 0;
  }

  std::size_t words_;
  Array<std::uint32_t> planes_;
  Array<std::uint32_t> pending_;
  Array<std::uint32_t> spilled_;
  std::uint32_t states_ = 0;          // in the planes
  std::uint32_t spilled_states_ = 0;  // in what was spilled
  std::vector<std::uint64_t> earlier_;
};

}  // namespace poise::cuda
