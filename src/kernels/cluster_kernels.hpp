/// The cluster algorithms of Swendsen and Wang and of Wolff, on models with bonds (kernels/clusters.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include "kernels/clusters.hpp"

namespace poise {

/// All clusters of a state at once (Swendsen and Wang 1987): bonds are drawn everywhere, and every cluster gets a
/// level.
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

/// How large clusters were while chains warmed up. What came before the last but one power of two of steps is
/// forgotten: half of all steps, or a quarter, in which chains were still on their way from their start.
class ClusterSizes {
 public:
  struct Sums {
    std::uint64_t clusters = 0;
    std::uint64_t variables = 0;  ///< in them

    Sums& operator+=(const Sums& more) {
      clusters += more.clusters;
      variables += more.variables;
      return *this;
    }
  };

  void add(std::uint64_t clusters, std::uint64_t variables) {
    if (std::has_single_bit(++steps_)) {
      sums_[0] = sums_[1];
      sums_[1] = {};
    }
    sums_[1].clusters += clusters;
    sums_[1].variables += variables;
  }
  [[nodiscard]] Sums sums() const {
    return {sums_[0].clusters + sums_[1].clusters, sums_[0].variables + sums_[1].variables};
  }

  template <class A>
  void archive(A& archive) {
    archive(sums_, steps_);
  }

 private:
  std::array<Sums, 2> sums_ = {};  // up to the last power of two, and since then
  std::uint64_t steps_ = 0;
};

/// One cluster after another (Wolff 1989): each grows from a variable drawn at random and takes another level as a
/// whole. One in n + 1 is left out, as if one more variable were drawn: where hardly any two are joined, every cluster
/// changes one variable, and steps of a fixed number of clusters would keep the parity of binary variables or turn it
/// every time (`Rests` in kernels/step.hpp says the same of single changes).
///
/// Clusters are tiny in disorder and as large as the model in order, so what a cluster costs and what it is worth
/// depend on the state. A step is a number of clusters that does not: it is such that a step changes about as many
/// variables as there are, found while chains warm up and frozen before the first draw. (A step that made clusters
/// until enough variables had changed would end in states of its own choice, which are not draws from the target.)
template <Target T>
class Wolff {
 public:
  static constexpr InstructionSet kWidest = InstructionSet::avx512;  // for the random words

  struct Scratch : ClusterScratch {
    explicit Scratch(const T& target) : ClusterScratch(target.num_variables()) {}
    ClusterSizes sizes;

    /// What the next step depends on, and what was counted.
    template <class A>
    void archive(A& archive) {
      archive(levels, evals, sizes);
    }
  };

  /// A step makes this many clusters, or as many as warm-up finds if it is 0; without a warm-up that is one.
  Wolff(std::shared_ptr<const BondGraph> graph, std::uint64_t clusters)
      : graph_(std::move(graph)), given_(clusters), clusters_(std::max<std::uint64_t>(1, clusters)) {}

  [[nodiscard]] static Index steps_per_sweep(const T&) { return 1; }
  [[nodiscard]] std::uint64_t clusters() const { return clusters_; }
  void prepare(const T& target, const typename T::State& state, Scratch& scratch) const { scratch.take(target, state); }

  // How the kernel tunes itself: until it is frozen, a step makes clusters until they have as many members as there are
  // variables, whatever their size.

  using Found = ClusterSizes::Sums;

  void start_tuning() { tuning_ = given_ == 0; }
  [[nodiscard]] bool is_tuning() const { return tuning_; }
  static void forget_found(Scratch& chain) { chain.sizes = {}; }
  static void add_found(const Scratch& chain, Found& found) { found += chain.sizes.sums(); }
  /// `all` is what was found in all chains.
  void freeze(const Found& all) {
    if (!std::exchange(tuning_, false) || all.variables == 0) return;
    const double wanted = static_cast<double>(graph_->num_variables()) * static_cast<double>(all.clusters) /
                          static_cast<double>(all.variables);
    clusters_ = static_cast<std::uint64_t>(std::max(1.0, std::round(wanted)));
  }
  template <class A>
  void archive(A& archive) {
    archive(clusters_, tuning_);
  }

  StepInfo step(const T& target, typename T::State& state, Scratch& scratch, Rng& rng) const {
    const BondGraph& graph = *graph_;
    const Index n = graph.num_variables();
    const Index few = ClusterScratch::few(n);
    StepWords words(rng);
    Value* const levels = scratch.levels.data();
    std::uint64_t clusters = 0, variables = 0;
    Index kept = 0;  // members of the clusters so far, as long as they are few
    bool many = false;
    while (tuning_ ? variables < n : clusters < clusters_) {
      Index* const members = scratch.members.data() + kept;
      ++clusters;
      const Index from = words.below(n + 1);
      if (from == n) continue;
      const Value old = levels[from];
      const Value fresh = other_level(old, words);
      levels[from] = fresh;
      members[0] = from;
      const Index size = graph.grow(levels, old, fresh, members, words);
      variables += size;
      kept += size;
      if (kept > few) {
        many = true;
        kept = 0;
      }
    }
    if (many) {
      scratch.put(target, state);
    } else {
      scratch.put_members(target, state, kept);
    }
    if (tuning_) scratch.sizes.add(clusters, variables);
    scratch.evals.ratio += variables;
    return {1.0, !scratch.changed.empty(), static_cast<std::uint32_t>(scratch.changed.size())};
  }

 private:
  /// All others are as likely.
  POISE_INLINE Value other_level(Value old, StepWords& words) const {
    if (graph_->levels() == 2) return old ^ Value { 1 };
    const auto other = static_cast<Value>(words.below(graph_->levels() - 1));
    return other < old ? other : static_cast<Value>(other + 1);
  }

  std::shared_ptr<const BondGraph> graph_;
  std::uint64_t given_;     // by hand; 0 where it is to be tuned
  std::uint64_t clusters_;  // of a step
  bool tuning_ = false;
};

}  // namespace poise
