/// What engines do with single states of a target.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <poise/extend/base/concepts.hpp>
#include <poise/extend/kernels/rao_blackwell.hpp>

namespace poise {

/// Engines that keep the state of each chain as its target has it.
template <Target T>
class StatesOf {
 public:
  virtual ~StatesOf() = default;
  [[nodiscard]] virtual const typename T::State& state(std::size_t chain) const = 0;
};

/// Why no chain can start at what was tried.
[[nodiscard]] std::string no_start(std::uint64_t chain, unsigned attempts);

/// A state of positive probability: the given one, or what `other` gives, attempt after attempt, until it gives an
/// empty one. `chain` is for the sentence if there is none.
template <Target T>
typename T::State make_start(const T& target, std::span<const Value> levels, std::uint64_t chain,
                             const std::function<std::vector<Value>(unsigned attempt)>& other, Evals& evals) {
  typename T::State state = target.make_state(levels);
  for (unsigned attempt = 0;; ++attempt) {
    evals.target += 1;
    if (target.log_prob(state) != -std::numeric_limits<double>::infinity()) return state;
    const std::vector<Value> next = other ? other(attempt) : std::vector<Value>();
    if (next.empty()) throw InputError(no_start(chain, attempt));
    state = target.make_state(next);
  }
}

template <Target T>
void copy_levels(const T& target, const typename T::State& state, std::span<Value> out) {
  for (Index i = 0; i < target.num_variables(); ++i) out[i] = target.level(state, i);
}

/// Of each variable, whether every other level has probability zero.
template <Target T>
void find_frozen(const T& target, const typename T::State& state, std::span<std::uint8_t> out) {
  std::vector<double> ratios(target.num_moves());
  target.log_ratios(state, ratios);
  Index move = 0;
  for (Index i = 0; i < target.num_variables(); ++i) {
    out[i] = 1;
    for (Index k = 1; k < target.cardinality(i); ++k) {
      if (ratios[move++] > -std::numeric_limits<double>::infinity()) out[i] = 0;
    }
  }
}

/// Adds the conditional probabilities of all variables; `log_ratios` is a buffer.
template <Target T>
void add_conditionals(const T& target, const typename T::State& state, std::vector<double>& log_ratios,
                      RaoBlackwell& to) {
  log_ratios.resize(target.num_moves());
  target.log_ratios(state, log_ratios);
  Index first = 0;
  for (Index i = 0; i < target.num_variables(); ++i) {
    const Index moves = target.cardinality(i) - 1;
    if (moves > 0) to.add(first, {log_ratios.data() + first, moves}, target.level(state, i));
    first += moves;
  }
  ++to.count;
}

}  // namespace poise
