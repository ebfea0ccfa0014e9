/// How far chains as bits have come, on the device; sweeps are started one by one, or many at once as a graph.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "engines/cuda/bits/bit_counts.hpp"
#include "engines/cuda/bits/bit_kernels.hpp"
#include "engines/cuda/common/call.hpp"
#include "engines/cuda/common/launch_graph.hpp"

namespace poise::cuda {

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
