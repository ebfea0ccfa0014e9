/// Gibbs on random blocks: all settings of a few variables are weighed, and one is drawn in proportion.
#pragma once

#include <algorithm>

#include <poise/kernel/block_moves.hpp>

namespace poise {

template <Target T>
class BlockGibbs {
 public:
  using Scratch = BlockScratch<T>;

  explicit BlockGibbs(Index size) : size_(size) {}

  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] Index steps_per_sweep(const T& target) const {
    return std::max<Index>(1, target.num_variables() / size_);
  }
  void prepare(const T&, const typename T::State&, Scratch&) const {}

  /// Probabilities of all settings of `scratch.block`, the rest of the state staying as it is.
  void conditional(const T& target, const typename T::State& state, Scratch& scratch) const {
    std::vector<Index> cardinalities;
    std::vector<Value> from;
    for (const Index i : scratch.block) {
      cardinalities.push_back(target.cardinality(i));
      from.push_back(target.level(state, i));
    }
    weigh_settings(target, state, scratch,
                   [&](auto&& change, auto&& take) { walk_all(cardinalities, from, change, take); });
    normalise(scratch);
  }

  StepInfo step(const T& target, typename T::State& state, Scratch& scratch, Rng& rng) const {
    draw_block(scratch, size_, rng);
    conditional(target, state, scratch);
    return draw_setting(target, state, scratch, rng);
  }

  template <class Visit>
  void for_each_change(const T&, const typename T::State&, const Scratch& scratch, const StepInfo&,
                       Visit&& visit) const {
    for (const auto& [variable, old] : scratch.changed) visit(variable, scratch.first_move[variable], old);
  }

 private:
  Index size_;
};

}  // namespace poise
