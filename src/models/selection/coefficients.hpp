/// The posterior of the coefficients of one model: Student's t, or normal where s2 is known.
#pragma once

#include <vector>

#include "models/selection/selection_law.hpp"

namespace poise {

/// Under one slab variance.
struct CoefficientPart {
  double log_likelihood = 0.0;  ///< over that of the empty model
  std::vector<double> mean;     ///< of the variables of the set, in their order
  std::vector<double> scale;    ///< of Student's t with as many degrees of freedom as there are observations
};

/// Coefficients of a set of variables, a part for each slab variance, by an elimination of s x s numbers. Empty where
/// columns depend on each other under a g-prior.
[[nodiscard]] std::vector<CoefficientPart> coefficients_of(const SelectionLaw& law, const std::vector<Index>& set);

/// P(T <= t) of Student's t, by Wallace's (1959) normal approximation, right to three digits from three degrees on;
/// normal where `degrees` is infinite.
[[nodiscard]] double student_cdf(double t, double degrees);

}  // namespace poise
