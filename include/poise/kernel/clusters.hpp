/// Cluster moves for models whose variables like to be alike and prefer no level (Swendsen and Wang 1987).
///
/// Where log p is a sum of w_ij [x_i = x_j] with all w_ij >= 0, two neighbours that are alike are joined with
/// probability 1 - e^-w. Given these bonds every cluster takes any level with the same probability, and a step draws
/// one for each.
#pragma once

#include <cstddef>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <poise/concepts.hpp>
#include <poise/kernel/changes.hpp>

namespace poise {

/// The neighbours of every variable, and how strongly they hold together.
struct BondGraph {
  struct Bond {
    Index variable;
    double probability;  ///< of joining the two where they are alike
  };
  std::vector<std::size_t> start;  ///< variables + 1
  std::vector<Bond> bonds;
  Index levels = 2;  ///< of every variable

  [[nodiscard]] Index num_variables() const { return static_cast<Index>(start.size() - 1); }
  [[nodiscard]] const Bond* begin(Index i) const { return bonds.data() + start[i]; }
  [[nodiscard]] const Bond* end(Index i) const { return bonds.data() + start[i + 1]; }
};

template <Target T>
class SwendsenWang {
 public:
  struct Scratch {
    explicit Scratch(const T& target) : parent(target.num_variables()), drawn(target.num_variables()) {
      changed.reserve(target.num_variables());
    }
    std::vector<Index> parent;  // of each variable in its cluster
    std::vector<Value> drawn;   // levels of clusters, at their roots
    std::vector<Change> changed;
    Evals evals;

    /// What the next step depends on, and what was counted.
    template <class A>
    void archive(A& archive) {
      archive(evals);
    }
  };

  explicit SwendsenWang(std::shared_ptr<const BondGraph> graph) : graph_(std::move(graph)) {}

  [[nodiscard]] static Index steps_per_sweep(const T&) { return 1; }
  void prepare(const T&, const typename T::State&, Scratch&) const {}

  StepInfo step(const T& target, typename T::State& state, Scratch& scratch, Rng& rng) const {
    const BondGraph& graph = *graph_;
    const Index n = graph.num_variables();
    std::vector<Index>& parent = scratch.parent;
    std::iota(parent.begin(), parent.end(), Index{0});
    const auto root = [&](Index i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    for (Index i = 0; i < n; ++i) {
      const Value level = target.level(state, i);
      for (const BondGraph::Bond* bond = graph.begin(i); bond != graph.end(i); ++bond) {
        const Index j = bond->variable;
        if (j < i || target.level(state, j) != level || rng.uniform() >= bond->probability) continue;
        // The lower number is the root, so that a root comes before the rest of its cluster.
        const Index a = root(i), b = root(j);
        parent[a < b ? b : a] = a < b ? a : b;
      }
    }
    scratch.changed.clear();
    for (Index i = 0; i < n; ++i) {
      const Index from = root(i);
      if (from == i) scratch.drawn[i] = static_cast<Value>(rng.uniform() * graph.levels);
      const Value old = target.level(state, i);
      if (scratch.drawn[from] == old) continue;
      target.apply(state, {i, scratch.drawn[from]});
      scratch.changed.push_back({i, i * (graph.levels - 1), old});
    }
    scratch.evals.ratio += n;
    return {1.0, !scratch.changed.empty(), static_cast<std::uint32_t>(scratch.changed.size())};
  }

 private:
  std::shared_ptr<const BondGraph> graph_;
};

}  // namespace poise
