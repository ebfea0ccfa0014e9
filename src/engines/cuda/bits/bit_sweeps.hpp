/// Sweeps of chains as bits on the device, and the states they make: started one by one, or many at once as graphs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engines/cuda/bits/bit_counts.hpp"
#include "engines/cuda/bits/bit_kernels.hpp"
#include "engines/cuda/bits/bit_runs.hpp"
#include "engines/cuda/common/call.hpp"
#include "engines/cuda/common/launch_graph.hpp"

namespace poise::cuda {

/// Which bits of which words are chains.
struct LaneRange {
  std::uint64_t first_word;  ///< number, by which random words are keyed
  std::uint32_t first;
  std::uint32_t count;

  [[nodiscard]] std::uint32_t words() const { return (first + count + kWordChains - 1) / kWordChains; }
};

/// Draws that are started together.
struct DrawsOfGraph {
  std::uint64_t sweeps;  ///< of a draw
  std::size_t draws;
};

class BitSweeps {
 public:
  BitSweeps(const BitTables& tables, const LaneRange& lanes, std::uint64_t seed)
      : variables_(tables.variables()), words_(lanes.words()) {
    std::vector<WordKeys> keys(words_);
    std::vector<std::uint32_t> chains(words_, 0);
    for (std::uint32_t w = 0; w < words_; ++w) {
      for (unsigned half = 0; half < 2; ++half) {
        const WordKey key = word_key(seed, Stream::bits, (lanes.first_word + w) * 2 + half);
        keys[w].first[half] = key.first;
        keys[w].second[half] = key.second;
      }
    }
    for (std::uint32_t k = lanes.first; k < lanes.first + lanes.count; ++k)
      chains[k / kWordChains] |= 1U << k % kWordChains;
    keys_ = Array<WordKeys>(keys);
    chains_ = Array<std::uint32_t>(chains);
    for (const BitTables::Run& run : tables.runs()) {
      if (run.count > 0) runs_.emplace_back(tables, run);
    }
    state_ = zeros<std::uint32_t>((std::size_t{variables_} + 1) * words_);
  }

  /// Once everything that was started is done. Where the state is the last of some draws it is copied from there.
  [[nodiscard]] std::uint32_t* state() const {
    if (last_set_) {
      copy_state(last_draw(*last_set_), state_.data());
      last_set_.reset();
    }
    return state_.data();
  }
  [[nodiscard]] std::size_t size() const { return state_.size(); }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }

  /// From sweep number `first` on. Every state is counted, where there are counts.
  void start(std::uint64_t first, std::uint64_t sweeps, BitCounts* counts) {
    static_cast<void>(state());
    progress_.start(first, sweeps, counts, stream_, [&](std::uint32_t ahead, cudaStream_t stream) {
      launch_sweep_of(view_of(state_.data(), state_.data(), ahead, counts), stream);
    });
  }

  /// Draws have slots of their own, in sets by turns: those of one can be looked at while others are made.
  static constexpr std::size_t kSets = 4;

  /// How many draws of so many sweeps are started as a graph, `most` of them at most; 0 where they are better started
  /// one by one.
  [[nodiscard]] std::size_t draws_of_graph(std::uint64_t sweeps, std::size_t most) const {
    const std::uint64_t launches = sweeps * runs_.size();
    if (launches == 0 || launches > kMostOfDraw) return 0;
    const std::size_t draws = std::min<std::size_t>({most, kMostDraws, kMostLaunches / launches, kMostStates / sweeps,
                                                     kMostBytes / (kSets * size() * sizeof(std::uint32_t))});
    return draws >= kLeastDraws ? draws : 0;
  }
  /// Starts a set of so many draws, each a state after so many sweeps. They continue from the last draw of the set
  /// before, which is where the state is if draws follow each other.
  void start_draws(std::uint64_t first, const DrawsOfGraph& wanted, BitCounts* counts, std::size_t set) {
    make_slots(wanted);
    const auto sweeps = static_cast<std::uint32_t>(wanted.sweeps * wanted.draws);
    progress_.prepare(first, sweeps, counts, stream_);
    const std::size_t before = (set + kSets - 1) % kSets;
    if (last_set_ != before) copy_state(state(), last_draw(before));
    Graph& graph = drawings_[counts != nullptr][set];
    if (!graph.is_made()) graph = Graph([&](cudaStream_t stream) { launch_draws(counts, set, stream); });
    graph.launch(stream_);
    check_launch("sweeps were started");
    last_set_ = set;
    progress_.note(sweeps, counts);
  }
  /// States of a set, one after the other.
  [[nodiscard]] std::uint32_t* draws(std::size_t set) const { return draws_.data() + set * drawn_.draws * size(); }

 private:
  // Sizes of graphs that make draws. A graph begins some microseconds after the one before has ended, so it has many
  // draws.
  static constexpr std::uint64_t kMostOfDraw = 32;     // launches
  static constexpr std::uint64_t kMostLaunches = 128;  // of all draws
  static constexpr std::size_t kMostDraws = 64;
  static constexpr std::size_t kLeastDraws = 4;
  static constexpr std::size_t kMostBytes = std::size_t{1} << 30;

  [[nodiscard]] SweepView view_of(std::uint32_t* state, const std::uint32_t* before, std::uint32_t ahead,
                                  const BitCounts* counts) const {
    return {state,
            before,
            keys_.data(),
            chains_.data(),
            words_,
            variables_,
            progress_.on_device(),
            ahead,
            counts == nullptr ? PlanesView{} : counts->view()};
  }
  void launch_sweep_of(const SweepView& view, cudaStream_t stream) const {
    for (const RunOnDevice& run : runs_) launch_sweep(run.view(), view, stream);
  }

  /// For draws of that kind.
  void make_slots(const DrawsOfGraph& wanted) {
    if (wanted.sweeps == drawn_.sweeps && wanted.draws == drawn_.draws) return;
    static_cast<void>(state());
    check(cudaStreamSynchronize(stream_), "sweeps were made");
    drawings_ = {};
    drawn_ = {};
    draws_ = {};
    draws_ = zeros<std::uint32_t>(kSets * wanted.draws * size());
    drawn_ = wanted;
  }
  [[nodiscard]] std::uint32_t* last_draw(std::size_t set) const { return draws(set) + (drawn_.draws - 1) * size(); }
  void copy_state(const std::uint32_t* from, std::uint32_t* to) const {
    check(cudaMemcpyAsync(to, from, size() * sizeof(std::uint32_t), cudaMemcpyDeviceToDevice, stream_),
          "states were copied");
  }

  void launch_draws(const BitCounts* counts, std::size_t set, cudaStream_t stream) {
    const std::uint32_t* before = last_draw((set + kSets - 1) % kSets);
    std::uint32_t* to = draws(set);
    std::uint32_t ahead = 0;
    for (std::size_t draw = 0; draw < drawn_.draws; ++draw, to += size()) {
      for (std::uint64_t k = 0; k < drawn_.sweeps; ++k, ++ahead) {
        launch_sweep_of(view_of(to, k == 0 ? before : to, ahead, counts), stream);
      }
      before = to;
    }
    progress_.advance(ahead, counts, stream);
  }

  std::uint32_t variables_;
  std::uint32_t words_;
  std::vector<RunOnDevice> runs_;
  Array<WordKeys> keys_;
  Array<std::uint32_t> chains_;
  Array<std::uint32_t> state_;
  Array<std::uint32_t> draws_;                   // [set][draw]
  DrawsOfGraph drawn_{};                         // that there are slots and graphs for
  mutable std::optional<std::size_t> last_set_;  // where the state is the last draw of a set
  SweepProgress progress_;
  CudaStream stream_{StreamOrder::with_default, StreamPriority::high};  // sums of draws are made beside it
  std::array<std::array<Graph, kSets>, 2> drawings_;                    // without and with counts, by the set of slots
};

}  // namespace poise::cuda
