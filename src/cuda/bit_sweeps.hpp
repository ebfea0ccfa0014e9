/// Sweeps of chains as bits on the device, and the states they make: started one by one, or many at once as graphs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "bit_counts.hpp"
#include "bit_kernels.hpp"
#include "bit_runs.hpp"
#include "call.hpp"
#include "graph.hpp"

namespace poise::cuda {

/// Which bits of which words are chains.
struct LaneRange {
  std::uint64_t first_word;  ///< number, by which random words are keyed
  std::uint32_t first;
  std::uint32_t count;

  [[nodiscard]] std::uint32_t words() const { return (first + count + kWordChains - 1) / kWordChains; }
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
    state_ = Array<std::uint32_t>((std::size_t{variables_} + 1) * words_);
    state_.clear();
    progress_ = Array<BitProgress>(1);
  }

  [[nodiscard]] std::uint32_t* state() const { return state_.data(); }
  [[nodiscard]] std::size_t size() const { return state_.size(); }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }

  /// From sweep number `first` on. Every state is counted, where there are counts.
  void start(std::uint64_t first, std::uint64_t sweeps, BitCounts* counts) {
    while (sweeps > 0) {
      const auto some = static_cast<std::uint32_t>(std::min<std::uint64_t>(sweeps, kOfGraph));
      prepare(first, some, counts);
      if (some == kOfGraph) {
        Graph& graph = graphs_[counts != nullptr];
        if (!graph.is_made()) graph = Graph([&](cudaStream_t stream) { launch_sweeps(some, counts, stream); });
        graph.launch(stream_);
      } else {
        launch_sweeps(some, counts, stream_);
      }
      check_launch("sweeps were started");
      note(some, counts);
      first += some;
      sweeps -= some;
    }
  }

  /// Draws have places of their own, in two sets by turns: those of one can be looked at while the other is made.
  static constexpr std::uint32_t kDrawsOfGraph = 16;

  /// Whether that many draws can be started as a graph.
  [[nodiscard]] bool has_graph(std::uint64_t sweeps, std::size_t draws) const {
    return draws == kDrawsOfGraph && sweeps * kDrawsOfGraph <= kMostStates && sweeps * runs_.size() <= kMostLaunches &&
           2 * kDrawsOfGraph * state_.size() * sizeof(std::uint32_t) <= kMostBytes;
  }
  /// Each draw is a state after so many sweeps.
  void start_draws(std::uint64_t first, std::uint64_t sweeps, BitCounts* counts, std::size_t set) {
    const auto of_draw = static_cast<std::uint32_t>(sweeps);
    prepare(first, of_draw * kDrawsOfGraph, counts);
    if (draws_.empty()) {
      draws_ = Array<std::uint32_t>(2 * kDrawsOfGraph * state_.size());
      draws_.clear();
    }
    Drawing& drawing = drawings_[counts != nullptr][set];
    if (drawing.sweeps != sweeps) {
      drawing = {Graph([&](cudaStream_t stream) { launch_draws(of_draw, counts, draws(set), stream); }), sweeps};
    }
    drawing.graph.launch(stream_);
    check_launch("sweeps were started");
    note(of_draw * kDrawsOfGraph, counts);
  }
  /// States of a set, one after the other.
  [[nodiscard]] std::uint32_t* draws(std::size_t set) const { return draws_.data() + set * kDrawsOfGraph * size(); }

 private:
  static constexpr std::uint32_t kOfGraph = 32;       // sweeps
  static constexpr std::uint64_t kMostLaunches = 32;  // for a draw that is part of a graph
  static constexpr std::size_t kMostBytes = std::size_t{1} << 30;

  /// What launches read before they are told how far ahead they are.
  void prepare(std::uint64_t first, std::uint32_t sweeps, BitCounts* counts) {
    const BitProgress now{first, counts == nullptr ? 0 : counts->make_room(sweeps)};
    if (known_ && known_->sweeps == now.sweeps && known_->states == now.states) return;
    launch_progress(progress_.data(), now, stream_);
    known_ = now;
  }
  void note(std::uint32_t sweeps, BitCounts* counts) {
    known_->sweeps += sweeps;
    if (counts == nullptr) return;
    known_->states += sweeps;
    counts->note(sweeps);
  }

  void launch_sweeps(std::uint32_t sweeps, const BitCounts* counts, cudaStream_t stream) {
    for (std::uint32_t ahead = 0; ahead < sweeps; ++ahead) {
      const SweepView view = view_of(state_.data(), state_.data(), ahead);
      for (const RunOnDevice& run : runs_) launch_sweep(run.view(), view, stream);
      count(state_.data(), ahead, counts, stream);
    }
    advance(sweeps, counts, stream);
  }
  [[nodiscard]] SweepView view_of(std::uint32_t* state, const std::uint32_t* before, std::uint32_t ahead) const {
    return {state, before, keys_.data(), chains_.data(), words_, variables_, progress_.data(), ahead};
  }
  void count(const std::uint32_t* state, std::uint32_t ahead, const BitCounts* counts, cudaStream_t stream) {
    if (counts != nullptr) launch_count(counts->view(), state, progress_.data(), ahead, stream);
  }
  void advance(std::uint32_t sweeps, const BitCounts* counts, cudaStream_t stream) {
    launch_progress(progress_.data(), sweeps, counts == nullptr ? 0 : sweeps, stream);
  }

  void launch_draws(std::uint32_t sweeps, const BitCounts* counts, std::uint32_t* to, cudaStream_t stream) {
    const std::uint32_t* before = state_.data();
    for (std::uint32_t draw = 0; draw < kDrawsOfGraph; ++draw, to += size()) {
      for (std::uint32_t k = 0; k < sweeps; ++k) {
        const std::uint32_t ahead = draw * sweeps + k;
        const SweepView view = view_of(to, k == 0 ? before : to, ahead);
        for (const RunOnDevice& run : runs_) launch_sweep(run.view(), view, stream);
        count(to, ahead, counts, stream);
      }
      before = to;
    }
    check(cudaMemcpyAsync(state_.data(), before, size() * sizeof(std::uint32_t), cudaMemcpyDeviceToDevice, stream),
          "states were copied");
    advance(kDrawsOfGraph * sweeps, counts, stream);
  }

  struct Drawing {
    Graph graph;
    std::uint64_t sweeps = 0;  // of a draw; 0 where there is none
  };

  std::uint32_t variables_;
  std::uint32_t words_;
  std::vector<RunOnDevice> runs_;
  Array<WordKeys> keys_;
  Array<std::uint32_t> chains_;
  Array<std::uint32_t> state_;
  Array<std::uint32_t> draws_;
  Array<BitProgress> progress_;
  std::optional<BitProgress> known_;  // what it is, once everything that was started is done
  CudaStream stream_;
  std::array<Graph, 2> graphs_;                     // without and with counts
  std::array<std::array<Drawing, 2>, 2> drawings_;  // likewise, by the set of places
};

}  // namespace poise::cuda
