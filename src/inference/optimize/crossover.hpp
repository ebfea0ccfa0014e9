/// Partition crossover: the best of two states in every part of a problem in which they differ.
#pragma once

#include <span>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include "inference/optimize/spin_problem.hpp"

namespace poise {

/// The variables in which two states differ fall into connected components of the graph. Flipping one of them changes
/// the value by an amount that does not depend on the others, so the best state that takes each component from either
/// parent is found at once (Tinos, Whitley, Chicano 2015). Where all spins can be flipped at no cost, the second
/// state is flipped first if it differs in more than half of the variables.
class Crossover {
 public:
  /// The problem must outlive it.
  explicit Crossover(const SpinProblem& problem)
      : problem_(&problem), symmetric_(problem.is_symmetric()), mark_(problem.num_variables(), kSame) {}

  struct Outcome {
    std::int64_t gain = 0;
    bool changed = false;
  };

  /// Takes from `other` what is better there, and what is as good with probability one half.
  Outcome improve(std::span<Spin> spins, std::span<const Spin> other, Rng& rng);

  /// Components of the last call.
  [[nodiscard]] std::size_t components() const { return components_; }

 private:
  enum Mark : unsigned char { kSame, kDiffers, kTaken };

  const SpinProblem* problem_;
  bool symmetric_;
  std::vector<unsigned char> mark_;
  std::vector<Index> differing_;
  std::vector<Index> component_;
  std::size_t components_ = 0;
};

/// Flips single variables as long as one of them has a gain. Gives the sum of gains.
std::int64_t climb(const SpinProblem& problem, std::span<Spin> spins);

}  // namespace poise
