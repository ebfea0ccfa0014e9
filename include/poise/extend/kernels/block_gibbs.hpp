/// Gibbs and the Hamming ball sampler on random blocks of variables.
#pragma once

#include <algorithm>

#include <poise/extend/kernels/block_moves.hpp>

namespace poise {

/// All configurations of a few variables are weighed, and one is drawn in proportion.
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

/// The Hamming ball sampler (Titsias and Yau 2017): u is drawn uniformly from the ball around x, then x from p on the
/// ball around u. Balls are all of one size, so u given x is as likely as x given u, and p is invariant.
template <Target T>
class HammingBall {
 public:
  using Scratch = BlockScratch<T>;

  HammingBall(Index size, unsigned radius) : size_(size), radius_(radius) {}

  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] unsigned radius() const { return radius_; }
  [[nodiscard]] Index steps_per_sweep(const T& target) const {
    return std::max<Index>(1, target.num_variables() / size_);
  }
  /// Throws InputError where a ball of the target may have too many configurations.
  void prepare(const T& target, const typename T::State& state, Scratch& scratch) const {
    scratch.reserve(size_, most_configurations(scratch.free_cardinalities(target), size_, radius_));
    scratch.ball_sizes.reserve((std::min<std::size_t>(size_, scratch.free.size()) + 1) * (radius_ + 1));
    check_log_prob(target, state);
  }

  /// The configurations of `scratch.block` around x, all equally likely to be the center of the next ball: how many
  /// there are.
  std::size_t num_centers(const T& target, const typename T::State& state, Scratch& scratch) const {
    look_at_block(target, state, scratch);
    return ball_size(scratch.cardinalities, radius_, scratch.ball_sizes);
  }
  /// Makes one of them `scratch.center`; x is in `scratch.now`.
  void set_center(Scratch& scratch, std::size_t number) const {
    scratch.center.assign(scratch.now.begin(), scratch.now.end());
    ball_member(scratch.cardinalities, number, radius_, scratch.ball_sizes, scratch.center);
  }

  /// Probabilities of the configurations in the ball around `scratch.center`.
  void conditional(const T& target, const typename T::State& state, Scratch& scratch) const {
    weigh_configurations(target, state, scratch, [&](auto&& change, auto&& take) {
      for (std::size_t k = 0; k < scratch.block.size(); ++k) {
        if (scratch.now[k] != scratch.center[k]) change(k, scratch.center[k]);
      }
      walk_ball(scratch.cardinalities, scratch.center, radius_, change, take);
    });
    normalise(scratch);
  }
  /// Makes `scratch.now` configuration `number` of those.
  void configuration(Scratch& scratch, std::size_t number) const {
    scratch.now.assign(scratch.center.begin(), scratch.center.end());
    ball_member(scratch.cardinalities, number, radius_, scratch.ball_sizes, scratch.now);
  }

  StepInfo step(const T& target, typename T::State& state, Scratch& scratch, Rng& rng) const {
    draw_block(scratch, size_, rng);
    const std::size_t centers = num_centers(target, state, scratch);
    set_center(scratch, static_cast<std::size_t>(rng.uniform() * static_cast<double>(centers)));
    conditional(target, state, scratch);
    configuration(scratch, draw_number(scratch, rng));
    return move_to(target, state, scratch);
  }

 private:
  Index size_;
  unsigned radius_;
};

}  // namespace poise
