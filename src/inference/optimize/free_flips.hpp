/// The symmetry of an Ising problem: components without a field, which can be flipped as a whole at no cost.
#pragma once

#include <span>
#include <vector>

#include "inference/optimize/spin_problem.hpp"

namespace poise {

class FreeFlips {
 public:
  FreeFlips() = default;  ///< none
  explicit FreeFlips(const SpinProblem& problem);

  /// Of all states that such flips lead to, the one in which the first spin of every component is +1.
  void normalise(std::span<Spin> spins) const;
  /// Whether the spin is the first one of a component that can be flipped.
  [[nodiscard]] bool is_first(Index i) const { return !first_.empty() && first_[i] == i; }

 private:
  std::vector<Index> first_;  // of the component of each spin, or a mark where a field holds it
};

}  // namespace poise
