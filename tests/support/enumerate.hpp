/// States and probabilities of small targets, as the library's own checks enumerate them.
#pragma once

#include <vector>

#include <poise/extend/check/exactness.hpp>

namespace poise::testing {

using Levels = std::vector<Value>;

template <class T>
std::vector<Levels> all_states(const T& target) {
  return enumerate_states(target).states;
}

/// Probabilities of the states that `all_states` gives.
template <class T>
std::vector<double> probabilities(const T& target, const std::vector<Levels>&) {
  return enumerate_states(target).probabilities;
}

}  // namespace poise::testing
