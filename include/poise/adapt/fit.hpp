/// Starting a learned rule from a fixed one.
#pragma once

#include <poise/balance/learned_rule.hpp>

namespace poise {

/// Fits a rule to a fixed one by least squares on log g (Adam); returns the root mean square error of log g.
double fit(LearnedRule& rule, Balance::Rule target, int steps);

}  // namespace poise
