/// Gibbs on random blocks: all configurations of a few variables are weighed, and one is drawn in proportion.
#pragma once

#include <algorithm>

#include <poise/extend/kernels/block_moves.hpp>

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
  /// Throws InputError where a block of the target may have too many configurations.
  void prepare(const T& target, const typename T::State& state, Scratch& scratch) const {
    scratch.reserve(size_, most_configurations(scratch.free_cardinalities(target), size_));
    check_log_prob(target, state);
  }

  /// Probabilities of all configurations of `scratch.block`, the rest of the state staying as it is.
  void conditional(const T& target, const typename T::State& state, Scratch& scratch) const {
    look_at_block(target, state, scratch);
    scratch.direction.resize(scratch.block.size());
    weigh_configurations(target, state, scratch, [&](auto&& change, auto&& take) {
      walk_all(scratch.cardinalities, scratch.now, scratch.direction, change, take);
    });
    normalise(scratch);
  }
  /// Makes `scratch.now` configuration `number` of those.
  void configuration(Scratch& scratch, std::size_t number) const {
    gray_code(scratch.cardinalities, number, scratch.now);
  }

  StepInfo step(const T& target, typename T::State& state, Scratch& scratch, Rng& rng) const {
    draw_block(scratch, size_, rng);
    conditional(target, state, scratch);
    configuration(scratch, draw_number(scratch, rng));
    return move_to(target, state, scratch);
  }

 private:
  Index size_;
};

}  // namespace poise
