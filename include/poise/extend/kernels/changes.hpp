/// What a step of a kernel changes in the state, for whoever counts levels.
///
/// A kernel that changes many variables in a step lists them in `scratch.changed`; one that changes a single variable
/// has `for_each_change` of its own.
#pragma once

#include <utility>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/base/hot.hpp>

namespace poise {

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

}  // namespace poise
