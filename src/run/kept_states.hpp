/// A few states of one chain, evenly spaced however long the run is: checks against the model look at them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <poise/types.hpp>

namespace poise {

/// Every seventh draw at first. When there are three times as many states as are wanted, two of three go: spacings stay
/// odd, so that a chain with a period of two is seen in both of its phases.
class KeptStates {
 public:
  /// Whether the state after draw number `draw`, from 1 on, is to be added.
  [[nodiscard]] bool wants(std::uint64_t draw) const { return draw % spacing_ == 0; }
  /// Draws from `draw` on until that is so.
  [[nodiscard]] std::size_t until_next(std::uint64_t draw) const { return spacing_ - draw % spacing_; }

  void add(std::span<const Value> levels, std::size_t wanted) {
    states_.emplace_back(levels.begin(), levels.end());
    if (states_.size() < 3 * wanted) return;
    for (std::size_t k = 0; k < wanted; ++k) std::swap(states_[k], states_[3 * k + 2]);
    states_.resize(wanted);
    spacing_ *= 3;
  }

  [[nodiscard]] const std::vector<std::vector<Value>>& states() const { return states_; }

  template <class A>
  void archive(A& archive) {
    archive(states_, spacing_);
  }

 private:
  std::vector<std::vector<Value>> states_;
  std::uint64_t spacing_ = 7;
};

}  // namespace poise
