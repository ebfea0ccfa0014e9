/// What every kernel needs around a step: the numbers it takes from a target, the list of what it changed, and sums of
/// conditional probabilities.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/base/hot.hpp>
#include <poise/types.hpp>

namespace poise {

// Kernels take any finite log ratio or log p, and -inf. NaN and +inf are errors of the target, and no comparison or
// exponential may hide them: exp(min(0, NaN)) is 1.

inline constexpr const char* kBadLogRatio =
    "the target gave a log ratio of NaN or +inf, expected a finite number or -inf";
inline constexpr const char* kBadLogProb = "the target gave a log p of NaN or +inf, expected a finite number or -inf";

POISE_INLINE bool is_legal(double log) { return log < std::numeric_limits<double>::infinity(); }
/// -1 in the lanes that are legal.
POISE_INLINE Ints8 legal8(const Doubles8& log) {
  return less8(log, broadcast8(std::numeric_limits<double>::infinity()));
}

/// For `prepare`: ratios to a state of log p = +inf are -inf, which is legal, and a chain would stay there for ever.
template <Target T>
void check_log_prob(const T& target, const typename T::State& state) {
  if (!is_legal(target.log_prob(state))) throw std::runtime_error(kBadLogProb);
}

/// Proposals that would change something, and the sum of their acceptance probabilities: what step lengths are tuned
/// by.
struct ProposalCounts {
  double count = 0.0;
  double accepted = 0.0;

  ProposalCounts& operator+=(const ProposalCounts& more) {
    count += more.count;
    accepted += more.accepted;
    return *this;
  }
  template <class A>
  void archive(A& archive) {
    archive(count, accepted);
  }
};

/// Kernels of single changes rest now and then: with probability 1/(m + 1), m being the number of moves, a step changes
/// nothing, as if staying were one more move. Where p is flat every change is accepted, and without rests a chain of
/// binary variables would have the parity of its steps: of two draws a sweep apart each would tell the other's parity,
/// and joint laws would be wrong. With them the parities of draws a sweep apart are correlated by (1 - 2/(m + 1))^m <
/// e^-2, and a sweep of m steps has one step less that counts.
struct Rests {
  explicit Rests(Index moves) : stretch(1.0 + 1.0 / std::max<Index>(1, moves)) {}
  /// A uniform number times this is compared with acceptance probabilities: where it is over 1 the chain rests.
  double stretch;
};

/// A variable that a step changed. A kernel that changes many variables in a step lists them in `scratch.changed`; one
/// that changes a single variable may have `for_each_change` of its own.
struct Change {
  Index variable;
  Index first_move;  ///< number of the first move of the variable
  Value old;         ///< the level it had
};

/// The number of the first move of each variable, and the number of moves last.
template <Target T>
[[nodiscard]] std::vector<Index> first_moves(const T& target) {
  std::vector<Index> out(target.num_variables() + std::size_t{1}, 0);
  for (Index i = 0; i < target.num_variables(); ++i) out[i + 1] = out[i] + target.cardinality(i) - 1;
  return out;
}

/// Calls visit(variable, number of its first move, old level) for what the last step changed.
template <Target T, class K, class Visit>
POISE_INLINE void for_each_change(const K& kernel, const T& target, const typename T::State& state,
                                  const typename K::Scratch& scratch, const StepInfo& info, Visit&& visit) {
  if constexpr (requires { scratch.changed; }) {
    for (const Change& change : scratch.changed) visit(change.variable, change.first_move, change.old);
  } else {
    kernel.for_each_change(target, state, scratch, info, std::forward<Visit>(visit));
  }
}

/// Sums of conditional probabilities, P(variable at level | all others), over the states a chain has visited.
///
/// Their averages estimate the marginals with less noise than counting levels does (Rao and Blackwell): a visit tells
/// how likely each level was, not only which one came.
struct RaoBlackwell {
  std::vector<double> sums;  ///< at each (variable, level > 0); empty: not wanted
  std::uint64_t count = 0;   ///< visits of every variable

  template <class A>
  void archive(A& archive) {
    archive(sums, count);
  }

  /// Adds one visit of a variable at `level`, from the log ratios of its moves; `first` is the number of the first one.
  void add(Index first, std::span<const double> log_ratios, Value level) {
    double largest = 0.0;
    for (const double u : log_ratios) largest = std::max(largest, u);
    double total = std::exp(-largest);
    for (const double u : log_ratios) total += std::exp(u - largest);
    if (!(total > 0.0)) throw std::runtime_error(kBadLogRatio);  // NaN, also where the largest is +inf
    for (Index k = 0; k < log_ratios.size(); ++k) {
      const Index to = k < level ? k : k + 1;
      if (to > 0) sums[first + to - 1] += std::exp(log_ratios[k] - largest) / total;
    }
    if (level > 0) sums[first + level - 1] += std::exp(-largest) / total;
  }
};

}  // namespace poise
