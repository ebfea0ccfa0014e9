/// Independent draws from a target, by a junction tree of its distribution: no chain at all where one can have that.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/kernels/step.hpp>
#include "exact/junction_tree.hpp"

namespace poise {

template <Target T>
class ExactDraws {
 public:
  /// No step remembers the one before.
  static constexpr bool kIndependent = true;

  struct Scratch {
    explicit Scratch(const T& target) : first_move(first_moves(target)), x(target.num_variables()) {
      changed.reserve(target.num_variables());
    }
    std::vector<Index> first_move;
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

  [[nodiscard]] static Index steps_per_sweep(const T&) { return 1; }
  void prepare(const T&, const typename T::State&, Scratch&) const {}

  /// Makes a state from scratch, with memory of its own, so it stays out of hot loops.
  [[gnu::noinline]] StepInfo step(const T& target, typename T::State& state, Scratch& scratch, Rng& rng) const {
    tree_->draw(rng, scratch.drawn);
    // Which variables change cannot be foreseen, so each is written down and kept where it did.
    scratch.changed.resize(target.num_variables());
    std::size_t count = 0;
    for (Index i = 0; i < target.num_variables(); ++i) {
      const Value before = target.level(state, i);
      scratch.x[i] = static_cast<Value>(scratch.drawn[i]);
      scratch.changed[count] = {i, scratch.first_move[i], before};
      count += scratch.x[i] != before ? 1 : 0;
    }
    scratch.changed.resize(count);
    state = target.make_state(scratch.x);
    scratch.evals.target += 1;
    return {1.0, !scratch.changed.empty(), static_cast<std::uint32_t>(scratch.changed.size())};
  }

 private:
  std::shared_ptr<const JunctionTree> tree_;
};

}  // namespace poise
