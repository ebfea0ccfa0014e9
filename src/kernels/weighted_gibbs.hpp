/// Weighted tempered Gibbs (Zanella and Roberts 2019) as a jump process, for targets that have all log odds at once.
///
/// A flip of variable j has the rate w_j = (P_j + k/p) / P(x_j | the others), P_j being the probability that x_j = 1
/// given the others. pi(x) w_j(x) = (pi(x) + pi(x')) (P_j + k/p) is the same from both sides, so the process keeps pi.
/// From x_j = 0 with odds o the rate is o + (1 + o) k/p, from x_j = 1 it is 1 + (1 + 1/o) k/p. In equilibrium each
/// variable flips 2 (P_j + k/p) times a unit of time: most flips go to what is uncertain, and k of them look elsewhere.
///
/// A step is a unit of time, so draws are recorded at equal times and have the law pi, unweighted. Averages of P_j over
/// time use, in place of the random time that a state is held, its mean given the time that is left of the unit,
/// (1 - e^(-Z left)) / Z with Z the sum of the rates.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <poise/extend/base/hot.hpp>
#include <poise/extend/base/math.hpp>
#include <poise/extend/base/rng.hpp>
#include <poise/extend/kernels/step.hpp>
#include "models/selection/selection_target.hpp"

namespace poise {

class WeightedGibbs {
 public:
  struct Scratch {
    explicit Scratch(const SelectionTarget& target);

    LineVector rates;          ///< of flips, times `scale`; zero beyond the last variable
    LineVector probs;          ///< P_j
    std::vector<double> sums;  ///< of rates, over kTogether variables each
    double total = 0.0;        ///< of `sums`
    double scale = 1.0;        ///< below 1 where rates would be beyond the range of doubles
    bool known = false;        ///< whether these are of the present state
    std::vector<double> odds;  ///< log odds of the included variables
    LineVector stored;         ///< of all, where they are not taken straight from v and r
    std::vector<Change> changed;
    RaoBlackwell rao_blackwell;  ///< counts ticks of time, `kTicks` a step
    const char* failure = nullptr;
    Evals evals;

    template <class A>
    void archive(A& archive) {
      archive(rao_blackwell, evals);
      known = false;
    }
  };

  /// Variables whose rates are summed together.
  static constexpr std::size_t kTogether = 64;
  /// Ticks of time in a step. Whole numbers of them add up exactly.
  static constexpr double kTicks = 1048576.0;

  /// `elsewhere` is k.
  explicit WeightedGibbs(double elsewhere) : elsewhere_(elsewhere) {}

  [[nodiscard]] static Index steps_per_sweep(const SelectionTarget& /*target*/) { return 1; }
  void prepare(const SelectionTarget& target, const SelectionTarget::State& state, Scratch& scratch) const {
    check_log_prob(target, state);
    scratch.known = false;
  }
  StepInfo step(const SelectionTarget& target, SelectionTarget::State& state, Scratch& scratch, Rng& rng) const;

  /// Rates and probabilities of the present state.
  void look(const SelectionTarget& target, const SelectionTarget::State& state, Scratch& scratch) const;

 private:
  double elsewhere_;
};

}  // namespace poise
