/// Variables of an Ising problem that need no search: fixed ones, and those that are maximised out exactly.
///
/// max over x_v of x_v h = |h|, where h = a + sum_j w_j x_j. As a function of the neighbours this is again a sum of a
/// constant, fields and couplings where v has at most two neighbours, and where it has three and a = 0. So v can go,
/// its neighbours are coupled to each other instead, and when their best values are known, that of v is the sign of h.
/// A field that all couplings together cannot outweigh decides its variable, whatever its degree.
/// Trees and series-parallel graphs are solved in this way; sparse random graphs lose most of their variables.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "inference/optimize/spin_problem.hpp"

namespace poise {

class SpinReduction {
 public:
  enum class Eliminate { no, yes };

  /// `fixed` has a spin for each variable, or 0 where it is free; it may be empty.
  SpinReduction(const SpinProblem& whole, std::span<const Spin> fixed, Eliminate eliminate = Eliminate::yes);

  /// What is left to search, with weights over their greatest common divisor.
  [[nodiscard]] const SpinProblem& core() const { return core_; }
  /// A state of the whole problem: the best that has these values in the core.
  [[nodiscard]] std::vector<Spin> expand(std::span<const Spin> core) const;
  /// The part of a state that lies in the core.
  [[nodiscard]] std::vector<Spin> restrict(std::span<const Spin> whole) const;

 private:
  struct Eliminated {
    Index variable;
    unsigned degree;
    std::array<Index, 3> neighbour;
    std::array<std::int64_t, 3> weight;
    std::int64_t field;
  };
  class Graph;

  SpinProblem core_;
  std::vector<Index> kept_;  // by the number in the core
  std::vector<Spin> fixed_;
  std::vector<Eliminated> eliminated_;
};

}  // namespace poise
