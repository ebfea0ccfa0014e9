/// The law of a proposal in which every variable changes by itself: what a variable does has a probability that depends
/// on its own log ratios alone.
///
/// Relaxation. With the others held fixed, a variable under the jump process with rates g relaxes to its conditional
/// distribution pi at the rate s = g(r) + g(1/r) = 2 e^phi(|u|) cosh(u/2), r = e^u; so after the time tau it has gone
/// to level k with probability pi_k (1 - e^(-tau s)). With more than two levels s is taken at |log(pi_max / (1 -
/// pi_max))|: it may depend on pi, but not on where the variable is.
///
/// Langevin (DMALA). Level k has the weight g(e^(u_k)) e^(-1/(2 alpha)), the present one g(1).
///
/// In both the level of the balancing function is the length of a step: log tau, or -1/(2 alpha). However long it is,
/// no variable changes with a probability over 1 - e^-kMostRate. Two variables that want to be alike and are not would
/// else both change, at every step, for good: each does what suits where the other was. Log ratios beyond
/// `kSteepest` in size count as that. Whatever is computed here *is* the law: draws are made from it and acceptance
/// probabilities take it as it is, so rounding does no harm. On targets whose first-order ratios are floats the law is
/// made of floats too, sixteen variables at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/base/lanes16.hpp>
#include <poise/extend/kernels/flips.hpp>
#include <poise/extend/kernels/step.hpp>
#include <poise/extend/learning/balancing_function.hpp>

namespace poise {

/// The size beyond which a log ratio counts as this: e^-64 times any step length of use is a normal float. Numbers that
/// are not normal take a processor a hundred times as long.
inline constexpr float kSteepestFloat = 64.0F;

/// The largest tau s. One of two variables that chase each other rests with probability 2 e^-4 (1 - e^-4), so they
/// meet after 28 steps on average; independent variables, which could be drawn anew at every step, keep (1 - e^-4) /
/// (1 + e^-4) = 96 % of the effective samples of that.
inline constexpr double kMostRate = 4.0;
/// The same as odds of a change, e^kMostRate - 1.
inline constexpr double kMostOdds = 53.598150033144236;

enum class FactorisedForm { relaxation, langevin };

/// Which moves belong to which variable.
struct VariableMoves {
  template <Target T>
  explicit VariableMoves(const T& target) : first(first_moves(target)) {
    for (Index i = 0; i < target.num_variables(); ++i) binary = binary && target.cardinality(i) <= 2;
  }
  [[nodiscard]] Index variables() const { return static_cast<Index>(first.size() - 1); }
  [[nodiscard]] Index moves() const { return first.back(); }
  [[nodiscard]] Index moves(Index i) const { return first[i + 1] - first[i]; }

  std::vector<Index> first;  ///< number of the first move of each variable; the number of all moves last
  bool binary = true;        ///< no variable has more than one move
};

/// What all variables of one state may do, in doubles or, where none has more than two levels, in floats.
template <class Real>
struct FactorisedLaw {
  /// The size beyond which a log ratio counts as this.
  static constexpr double kSteepest = std::is_same_v<Real, float> ? kSteepestFloat : 600.0;

  std::vector<Real> log_ratios;  ///< of all moves; padded with -inf
  /// Where variables have two levels, by move: the smaller one of the probabilities of changing and of staying, with
  /// the sign bit set where it is that of staying. So neither loses its digits beside the other.
  std::vector<Real> minor;
  /// Where some have more: probabilities of moves, and by variable that of staying. Padded with 0.
  std::vector<double> move_probs;
  std::vector<double> stay_probs;

  void resize(const VariableMoves& moves) {
    log_ratios.resize(padded(moves.moves()), -std::numeric_limits<Real>::infinity());
    if (moves.binary) {
      minor.resize(log_ratios.size());
    } else {
      move_probs.resize(log_ratios.size());
      stay_probs.resize(padded(moves.variables()));
    }
  }
  [[nodiscard]] static std::size_t padded(std::size_t count) {
    return (count + kFlipsTogether - 1) / kFlipsTogether * kFlipsTogether;
  }

  template <class A>
  void archive(A& archive) {
    archive(log_ratios, minor, move_probs, stay_probs);
  }
};

class FactorisedRule {
 public:
  FactorisedRule(FactorisedForm form, BalancingFunction function) : form_(form), function_(std::move(function)) {}

  [[nodiscard]] FactorisedForm form() const { return form_; }
  [[nodiscard]] const BalancingFunction& function() const { return function_; }

  /// The law from its log ratios; false where one of these is illegal.
  [[nodiscard]] bool fill(FactorisedLaw<float>& law, const VariableMoves& moves) const;
  [[nodiscard]] bool fill(FactorisedLaw<double>& law, const VariableMoves& moves) const;

 private:
  FactorisedForm form_;
  BalancingFunction function_;
};

}  // namespace poise
