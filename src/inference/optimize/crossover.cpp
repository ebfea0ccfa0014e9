/// Components in which two states differ, and what flipping each of them gains.
#include "inference/optimize/crossover.hpp"

namespace poise {

Crossover::Outcome Crossover::improve(std::span<Spin> spins, std::span<const Spin> other, Rng& rng) {
  std::size_t differences = 0;
  for (std::size_t i = 0; i < spins.size(); ++i) differences += spins[i] != other[i] ? 1 : 0;
  const int sign = symmetric_ && 2 * differences > spins.size() ? -1 : 1;
  differing_.clear();
  for (Index i = 0; i < spins.size(); ++i) {
    if (spins[i] == sign * other[i]) continue;
    mark_[i] = kDiffers;
    differing_.push_back(i);
  }
  Outcome outcome;
  components_ = 0;
  for (const Index first : differing_) {
    if (mark_[first] != kDiffers) continue;
    ++components_;
    component_.assign(1, first);
    mark_[first] = kTaken;
    // Couplings inside of the component keep their value; those to its surroundings, and fields, change their sign.
    std::int64_t gain = 0;
    for (std::size_t at = 0; at < component_.size(); ++at) {
      const Index i = component_[at];
      std::int64_t outside = problem_->field[i];
      for (std::size_t k = problem_->start[i]; k < problem_->start[i + 1]; ++k) {
        const Index j = problem_->neighbour[k];
        if (mark_[j] == kSame) {
          outside += problem_->weight[k] * spins[j];
        } else if (mark_[j] == kDiffers) {
          mark_[j] = kTaken;
          component_.push_back(j);
        }
      }
      gain -= 2 * outside * spins[i];
    }
    if (gain < 0 || (gain == 0 && rng.uniform() < 0.5)) continue;
    outcome.gain += gain;
    outcome.changed = true;
    for (const Index i : component_) spins[i] = static_cast<Spin>(-spins[i]);
  }
  for (const Index i : differing_) mark_[i] = kSame;
  return outcome;
}

std::int64_t climb(const SpinProblem& problem, std::span<Spin> spins) {
  std::int64_t total = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (Index i = 0; i < spins.size(); ++i) {
      const std::int64_t gain = -2 * spins[i] * problem.local_field(i, spins);
      if (gain <= 0) continue;
      spins[i] = static_cast<Spin>(-spins[i]);
      total += gain;
      changed = true;
    }
  }
  return total;
}

}  // namespace poise
