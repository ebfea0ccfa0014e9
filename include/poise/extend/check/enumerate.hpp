/// Small targets in full: all states and their exact probabilities.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <poise/extend/base/concepts.hpp>

namespace poise {

/// All states of a target, the first variable changing fastest, and their probabilities, from log p from scratch.
struct StateSpace {
  std::vector<std::vector<Value>> states;
  std::vector<double> probabilities;

  [[nodiscard]] std::size_t size() const { return states.size(); }
  /// Where a state is in the list.
  [[nodiscard]] std::size_t number(const std::vector<Value>& x) const {
    std::size_t place = 0;
    for (std::size_t i = 0; i < x.size(); ++i) place += strides[i] * x[i];
    return place;
  }

  std::vector<std::size_t> strides;  ///< how far apart states are that differ by one level in a variable
};

/// Throws InputError for a target of more than `most` states, or one whose log p cannot be normalised.
template <Target T>
StateSpace enumerate_states(const T& target, std::size_t most = 1U << 16U) {
  StateSpace space;
  std::vector<Value> x(target.num_variables(), 0);
  std::size_t size = 1;
  for (Index i = 0; i < target.num_variables(); ++i) {
    space.strides.push_back(size);
    size *= target.cardinality(i);
    if (size > most) {
      throw InputError(fmt::format("the target has more than {} states, expected one small enough to enumerate", most));
    }
  }
  double largest = -std::numeric_limits<double>::infinity();
  for (std::size_t s = 0; s < size; ++s) {
    for (Index i = 0; i < target.num_variables(); ++i) {
      x[i] = static_cast<Value>(s / space.strides[i] % target.cardinality(i));
    }
    space.states.push_back(x);
    space.probabilities.push_back(target.log_prob(target.make_state(x)));
    if (std::isnan(space.probabilities.back())) throw InputError(fmt::format("log p of state {} is not a number", s));
    largest = std::max(largest, space.probabilities.back());
  }
  if (!std::isfinite(largest)) throw InputError(fmt::format("the largest log p of all states is {}", largest));
  double sum = 0.0;
  for (double& p : space.probabilities) sum += p = std::exp(p - largest);
  for (double& p : space.probabilities) p /= sum;
  return space;
}

}  // namespace poise
