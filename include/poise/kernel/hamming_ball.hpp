/// The Hamming ball sampler (Titsias and Yau 2017) on random blocks: u is drawn uniformly from the ball around x, then
/// x from p on the ball around u. Balls are all of one size, so u given x is as likely as x given u, and p is
/// invariant.
#pragma once

#include <algorithm>

#include <poise/kernel/block_moves.hpp>

namespace poise {

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
  void prepare(const T&, const typename T::State&, Scratch&) const {}

  /// The settings of `scratch.block` around x, all equally likely to be the center of the next ball.
  void centers(const T& target, const typename T::State& state, Scratch& scratch, std::vector<Value>& out) const {
    std::vector<Value> now = levels(target, state, scratch);
    out.clear();
    walk_ball(
        cardinalities(target, scratch), levels(target, state, scratch), radius_,
        [&](std::size_t k, Value level) { now[k] = level; }, [&] { out.insert(out.end(), now.begin(), now.end()); });
  }

  /// Probabilities of the settings in the ball around `scratch.center`.
  void conditional(const T& target, const typename T::State& state, Scratch& scratch) const {
    const std::vector<Value> from = levels(target, state, scratch);
    weigh_settings(target, state, scratch, [&](auto&& change, auto&& take) {
      for (std::size_t k = 0; k < from.size(); ++k) {
        if (from[k] != scratch.center[k]) change(k, scratch.center[k]);
      }
      walk_ball(cardinalities(target, scratch), scratch.center, radius_, change, take);
    });
    normalise(scratch);
  }

  StepInfo step(const T& target, typename T::State& state, Scratch& scratch, Rng& rng) const {
    draw_block(scratch, size_, rng);
    const std::size_t size = scratch.block.size();
    centers(target, state, scratch, scratch.settings);
    const auto chosen = static_cast<std::size_t>(rng.uniform() * static_cast<double>(scratch.settings.size() / size));
    scratch.center.assign(scratch.settings.begin() + static_cast<std::ptrdiff_t>(chosen * size),
                          scratch.settings.begin() + static_cast<std::ptrdiff_t>((chosen + 1) * size));
    conditional(target, state, scratch);
    return draw_setting(target, state, scratch, rng);
  }

  template <class Visit>
  void for_each_change(const T&, const typename T::State&, const Scratch& scratch, const StepInfo&,
                       Visit&& visit) const {
    for (const auto& [variable, old] : scratch.changed) visit(variable, scratch.first_move[variable], old);
  }

 private:
  static std::vector<Index> cardinalities(const T& target, const Scratch& scratch) {
    std::vector<Index> out;
    for (const Index i : scratch.block) out.push_back(target.cardinality(i));
    return out;
  }
  static std::vector<Value> levels(const T& target, const typename T::State& state, const Scratch& scratch) {
    std::vector<Value> out;
    for (const Index i : scratch.block) out.push_back(target.level(state, i));
    return out;
  }

  Index size_;
  unsigned radius_;
};

}  // namespace poise
