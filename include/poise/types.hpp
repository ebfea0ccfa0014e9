/// The few plain types that every layer shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace poise {

/// Level of a variable: 0 .. cardinality-1. What a level is called (a spin of -1 or +1, say) is the model's business.
using Value = std::uint8_t;

/// Number of a variable, or of a move in the list of all moves of a state.
using Index = std::uint32_t;

/// log p of what is impossible.
inline constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// A single change of state: variable := value.
struct Move {
  Index variable;
  Value value;
};

/// What one transition did; what diagnostics need to know of it.
struct StepInfo {
  double accept_prob;   ///< probability with which the proposal was accepted
  bool accepted;        ///< whether it was
  std::uint32_t moves;  ///< variables that changed
};

/// What a run has cost. A batch of n evaluations counts n.
struct Evals {
  std::uint64_t target = 0;    ///< log p computed from scratch
  std::uint64_t ratio = 0;     ///< log p(x')/p(x) of a single move
  std::uint64_t gradient = 0;  ///< gradients of log p
  std::uint64_t balance = 0;   ///< evaluations of the balancing function
  std::uint64_t changes = 0;   ///< not a cost, but what it bought: changes of variables by steps that make many

  Evals& operator+=(const Evals& other) {
    target += other.target;
    ratio += other.ratio;
    gradient += other.gradient;
    balance += other.balance;
    changes += other.changes;
    return *this;
  }
  friend Evals operator-(Evals a, const Evals& b) {
    a.target -= b.target;
    a.ratio -= b.ratio;
    a.gradient -= b.gradient;
    a.balance -= b.balance;
    a.changes -= b.changes;
    return a;
  }
  /// Evaluations of the target in any form: the denominator of "ESS per evaluation".
  [[nodiscard]] std::uint64_t of_target() const { return target + ratio + gradient; }
};

/// The input is wrong and the message says how, in one sentence a user can act on. The program exits with 2.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace poise
