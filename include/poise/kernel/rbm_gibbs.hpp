/// The RBM's own block Gibbs: all hidden units given the visible ones, then all visible units given the hidden
/// ones.
#pragma once

#include <utility>
#include <vector>

#include <poise/concepts.hpp>
#include <poise/kernel/changes.hpp>
#include <poise/target/rbm.hpp>

namespace poise {

class RbmGibbs {
 public:
  struct Scratch {
    explicit Scratch(const Rbm& target)
        : hidden(target.padded_hidden(), 0), activations(target.num_variables()), x(target.num_variables()) {
      changed.reserve(target.num_variables());
    }
    std::vector<std::int64_t> hidden;  // masks: -1 where a unit is on
    std::vector<double> activations;   // of the visible units
    std::vector<Value> x;
    std::vector<Change> changed;  // by the last step
    Evals evals;

    /// What the next step depends on, and what was counted.
    template <class A>
    void archive(A& archive) {
      archive(evals);
    }
  };

  [[nodiscard]] static Index steps_per_sweep(const Rbm&) { return 1; }
  void prepare(const Rbm&, const Rbm::State&, Scratch&) const {}

  StepInfo step(const Rbm& target, Rbm::State& state, Scratch& scratch, Rng& rng) const {
    for (Index j = 0; j < target.num_hidden(); ++j) scratch.hidden[j] = rng.uniform() < state.on[j] ? -1 : 0;
    target.visible_activations(scratch.hidden, scratch.activations);
    scratch.changed.clear();
    for (Index i = 0; i < target.num_variables(); ++i) {
      const double odds_off = std::exp(-scratch.activations[i]);
      scratch.x[i] = rng.uniform() * (1.0 + odds_off) < 1.0 ? 1 : 0;
      if (scratch.x[i] != state.x[i]) scratch.changed.push_back({i, i, state.x[i]});
    }
    target.set(state, scratch.x);
    scratch.evals.gradient += 1;
    return {1.0, !scratch.changed.empty(), static_cast<std::uint32_t>(scratch.changed.size())};
  }
};

}  // namespace poise
