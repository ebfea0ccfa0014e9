/// Starting a learned function from a fixed one.
#pragma once

#include <poise/extend/learning/learned_function.hpp>

namespace poise {

/// Fits a function to a fixed one by least squares on log g (Adam); returns the root mean square error of log g.
double fit(LearnedFunction& function, BalancingFunction::Kind target, int steps);

}  // namespace poise
