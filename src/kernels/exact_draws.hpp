/// Independent draws from a network, by a junction tree that was built for it: no chain at all where one can have that.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/kernels/step.hpp>
#include "exact/junction_tree.hpp"
#include "models/network/markov_network.hpp"

namespace poise {

class ExactDraws {
 public:
  /// No step remembers the one before.
  static constexpr bool kIndependent = true;

  struct Scratch {
    explicit Scratch(const MarkovNetwork& target) : x(target.num_variables()) {
      changed.reserve(target.num_variables());
    }
    std::vector<Index> drawn;
    std::vector<Value> x;
    std::vector<Change> changed;  // by the last step
    Evals evals;

    /// What the next step depends on, and what was counted.
    template <class A>
    void archive(A& archive) {
      archive(evals);
    }
  };

  explicit ExactDraws(std::shared_ptr<const JunctionTree> tree) : tree_(std::move(tree)) {}

  [[nodiscard]] static Index steps_per_sweep(const MarkovNetwork&) { return 1; }
  void prepare(const MarkovNetwork&, const MarkovNetwork::State&, Scratch&) const {}

  /// Makes a state from scratch, with memory of its own, so it stays out of hot loops.
  [[gnu::noinline]] StepInfo step(const MarkovNetwork& target, MarkovNetwork::State& state, Scratch& scratch,
                                  Rng& rng) const {
    tree_->draw(rng, scratch.drawn);
    scratch.changed.clear();
    for (Index i = 0; i < target.num_variables(); ++i) {
      scratch.x[i] = static_cast<Value>(scratch.drawn[i]);
      if (scratch.x[i] != state.x[i]) scratch.changed.push_back({i, target.first_move(i), state.x[i]});
    }
    state = target.make_state(scratch.x);
    scratch.evals.target += 1;
    return {1.0, !scratch.changed.empty(), static_cast<std::uint32_t>(scratch.changed.size())};
  }

 private:
  std::shared_ptr<const JunctionTree> tree_;
};

}  // namespace poise
