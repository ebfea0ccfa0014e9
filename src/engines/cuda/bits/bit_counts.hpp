/// Counts of the bits of states, and of sweeps, on the device.
///
/// Bits are counted in planes of bits first, then in numbers of 32 bits, and on the host beyond that.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "engines/cuda/bits/bit_kernels.hpp"
#include "engines/cuda/common/call.hpp"
#include "engines/cuda/common/launch_graph.hpp"

namespace poise::cuda {

/// Bits are numbered word by word.
class BitCounts {
 public:
  /// From here on everything is counted, of so many words: always the same number.
  void reset(std::size_t words) {
    words_ = words;
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

  /// Counts of the bits first, first + step and so on.
  [[nodiscard]] std::vector<std::uint64_t> get(std::size_t first, std::size_t step, std::size_t count) const {
    const Array<std::uint64_t> out(count);
    launch_gather(view(), {first, step, count, spilled_.data()}, out.data());
    check_launch("counts were gathered");
    std::vector<std::uint64_t> counts = out.download();
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
    if (spilled_.empty()) spilled_ = zeros<std::uint32_t>(words_ * kWordChains);
    if (spilled_states_ > std::numeric_limits<std::uint32_t>::max() - states_) set_aside();
    launch_spill(view(), spilled_.data());
    check_launch("counts were added up");
    planes_.clear();
    spilled_states_ += states_;
    states_ = 0;
  }

  /// Before numbers of 32 bits overflow.
  void set_aside() {
    const std::vector<std::uint32_t> now = spilled_.download();
    earlier_.resize(now.size(), 0);
    for (std::size_t k = 0; k < now.size(); ++k) earlier_[k] += now[k];
    spilled_.clear();
    spilled_states_ = 0;
  }

  std::size_t words_ = 0;
  Array<std::uint32_t> planes_;
  Array<std::uint32_t> pending_;
  Array<std::uint32_t> spilled_;
  std::uint32_t states_ = 0;          // in the planes
  std::uint32_t spilled_states_ = 0;  // in what was spilled
  std::vector<std::uint64_t> earlier_;
};

// How far chains have come: sweeps are started one by one, or many at once as a graph.

class SweepProgress {
 public:
  [[nodiscard]] const BitProgress* on_device() const { return progress_.data(); }

  /// Sweeps from number `first` on. launch(ahead, stream) launches the one that is so many ahead, and counts its state
  /// where there are counts.
  template <class Launch>
  void start(std::uint64_t first, std::uint64_t sweeps, BitCounts* counts, cudaStream_t stream, Launch&& launch) {
    while (sweeps > 0) {
      const auto some = static_cast<std::uint32_t>(std::min<std::uint64_t>(sweeps, kOfGraph));
      const auto launch_some = [&](cudaStream_t to) {
        for (std::uint32_t ahead = 0; ahead < some; ++ahead) launch(ahead, to);
        advance(some, counts, to);
      };
      prepare(first, some, counts, stream);
      if (some == kOfGraph) {
        Graph& graph = graphs_[counts != nullptr];
        if (!graph.is_made()) graph = Graph(launch_some);
        graph.launch(stream);
      } else {
        launch_some(stream);
      }
      check_launch("sweeps were started");
      note(some, counts);
      first += some;
      sweeps -= some;
    }
  }

  // The parts of it, for other graphs.

  /// What launches read before they are told how far ahead they are.
  void prepare(std::uint64_t first, std::uint32_t sweeps, BitCounts* counts, cudaStream_t stream) {
    const BitProgress now{first, counts == nullptr ? 0 : counts->make_room(sweeps)};
    if (known_ && known_->sweeps == now.sweeps && known_->states == now.states) return;
    launch_progress(progress_.data(), now, stream);
    known_ = now;
  }
  /// The last of the launches.
  void advance(std::uint32_t sweeps, const BitCounts* counts, cudaStream_t stream) const {
    launch_progress(progress_.data(), sweeps, counts == nullptr ? 0 : sweeps, stream);
  }
  /// After they were started.
  void note(std::uint32_t sweeps, BitCounts* counts) {
    known_->sweeps += sweeps;
    if (counts == nullptr) return;
    known_->states += sweeps;
    counts->note(sweeps);
  }

 private:
  static constexpr std::uint32_t kOfGraph = 32;  // sweeps

  Array<BitProgress> progress_{1};
  std::optional<BitProgress> known_;  // what it is, once everything that was started is done
  std::array<Graph, 2> graphs_;       // without and with counts
};

}  // namespace poise::cuda
