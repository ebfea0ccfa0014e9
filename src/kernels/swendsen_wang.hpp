/// All clusters of a state at once (Swendsen and Wang 1987): bonds are drawn everywhere, and every cluster gets a
/// level.
#pragma once

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include "kernels/clusters.hpp"

namespace poise {

template <Target T>
class SwendsenWang {
 public:
  static constexpr InstructionSet kWidest = InstructionSet::avx512;  // for the random words

  struct Scratch : ClusterScratch {
    explicit Scratch(const T& target) : ClusterScratch(target.num_variables()), drawn(target.num_variables()) {}
    std::vector<Value> drawn;  // levels after the step

    /// What the next step depends on, and what was counted.
    template <class A>
    void archive(A& archive) {
      archive(levels, evals);
    }
  };

  explicit SwendsenWang(std::shared_ptr<const BondGraph> graph) : graph_(std::move(graph)) {}

  [[nodiscard]] static Index steps_per_sweep(const T&) { return 1; }
  void prepare(const T& target, const typename T::State& state, Scratch& scratch) const { scratch.take(target, state); }

  StepInfo step(const T& target, typename T::State& state, Scratch& scratch, Rng& rng) const {
    constexpr Value kVisited = std::numeric_limits<Value>::max();  // no level: variables have at most 128
    const BondGraph& graph = *graph_;
    const Index n = graph.num_variables();
    StepWords words(rng);
    Value* const levels = scratch.levels.data();
    Value* const drawn = scratch.drawn.data();
    Index* const members = scratch.members.data();
    for (Index i = 0; i < n; ++i) {
      const Value level = levels[i];
      if (level == kVisited) continue;
      // A bond is looked at by the first of its two ends only: the other one finds it visited.
      levels[i] = kVisited;
      members[0] = i;
      const Index size = graph.grow(levels, level, kVisited, members, words);
      const auto fresh = static_cast<Value>(words.below(graph.levels()));
      for (Index k = 0; k < size; ++k) drawn[members[k]] = fresh;
    }
    std::swap(scratch.levels, scratch.drawn);
    scratch.put(target, state);
    scratch.evals.ratio += n;
    return {1.0, !scratch.changed.empty(), static_cast<std::uint32_t>(scratch.changed.size())};
  }

 private:
  std::shared_ptr<const BondGraph> graph_;
};

}  // namespace poise
