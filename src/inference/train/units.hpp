/// The loops over units that matrix products leave: sigmoids, coin tosses, conditional probabilities.
#pragma once

#include <cstddef>
#include <cstdint>

#include <poise/extend/base/rng.hpp>

namespace poise {

/// Rows of units have room for a multiple of this many; what lies beyond the last unit must be finite, no more.
inline constexpr std::size_t kUnitLanes = 8;

/// Each activation becomes sigmoid(activation).
void to_probabilities(float* activations, std::size_t count);

/// units[i] = 1 with probability sigmoid(activations[i]), otherwise 0. Both may be the same.
void sample_units(const float* activations, std::size_t count, Rng& rng, float* units);

/// sum_j softplus(a_j + change_j) - softplus(a_j): what the hidden units add to the log ratio of a changed input.
/// `change` is 0 beyond the last unit.
double softplus_change(const float* activations, const float* change, std::size_t count);

/// sum_i (data_i - probability_i)^2.
double squared_distance(const float* data, const float* probabilities, std::size_t count);

}  // namespace poise
