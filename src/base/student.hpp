/// Standard errors from few values, widened so that they mean what those from many do.
#pragma once

#include <cmath>

namespace poise {

/// What a standard error from few values is multiplied by so that twice the product covers what twice a normal one
/// does: Student's t at the probability of two sigma (97.725 %), halved. 6.98, 2.26, 1.65, ... with 1, 2, 3, ...
/// degrees of freedom; 1.005 with 255. Beyond two the expansion in inverse degrees of freedom is good to 0.2 %.
[[nodiscard]] inline double student_widening(double degrees) {
  if (!(degrees >= 1.0)) return std::nan("");
  if (degrees < 2.0) return 6.9839;
  if (degrees < 3.0) return 2.2633;
  const double v = 1.0 / degrees;
  return 1.0 + v * (1.25 + v * (1.53125 + v * (1.4296875 + v * 0.92203)));
}

}  // namespace poise
