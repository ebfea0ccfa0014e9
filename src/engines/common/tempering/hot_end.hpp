/// The hot end of a tempered RBM: independent units that are as bright as the data.
#pragma once

#include "models/rbm/rbm.hpp"

namespace poise {

/// Visible units have their rates in the data, where the weights have them. Of other RBMs the biases are all that is
/// known of single units; within bounds, because a unit that the hot end never turns on carries no news to the cold
/// one.
///
/// Hidden units have biases m / sqrt(1 + k v), m and v the mean and variance of their activations at the hot end; k =
/// pi / 8 gives the mean of sigmoid(a) over a normal distribution. With large k states on the way to beta = 1 are
/// darker than at the ends, with small k brighter, and what is bright or dark at the cold end is rare on the way:
/// chains would meet a phase transition. So where the data are known, k makes states on the way as bright as these.
[[nodiscard]] Rbm::Base hot_end(const Rbm& target);

}  // namespace poise
