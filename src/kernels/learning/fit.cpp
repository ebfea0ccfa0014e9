/// Starting a learned function from a fixed one.
#include "kernels/learning/fit.hpp"

#include <cmath>
#include <vector>

#include <poise/extend/learning/optimizer.hpp>

namespace poise {

double fit(LearnedFunction& function, BalancingFunction::Kind target, int steps) {
  // Where the weight of a Markov chain lies: |u| up to 12, denser near 0.
  std::vector<double> points;
  for (double size = 0.0; size <= 12.0; size += size < 4.0 ? 0.25 : 1.0) points.push_back(size);
  const std::size_t n = points.size();
  std::vector<double> wanted(n), values(n), weights(n);
  for (std::size_t k = 0; k < n; ++k) wanted[k] = BalancingFunction(target).log_g(points[k]) - 0.5 * points[k];

  Optimizer optimizer(OptimizerKind::adam, 0.01, function.parameters().size());
  std::vector<double> gradient(function.parameters().size());
  double mean_square = 0.0;
  for (int step = 0; step <= steps; ++step) {
    function.phi(points, values);
    double shift = 0.0;  // g is determined up to a factor
    for (std::size_t k = 0; k < n; ++k) shift += (values[k] - wanted[k]) / static_cast<double>(n);
    mean_square = 0.0;
    for (std::size_t k = 0; k < n; ++k) {
      const double error = values[k] - wanted[k] - shift;
      mean_square += error * error / static_cast<double>(n);
      weights[k] = 2.0 * error / static_cast<double>(n);
    }
    if (step == steps) break;
    std::fill(gradient.begin(), gradient.end(), 0.0);
    function.backward(points, weights, gradient);
    optimizer.step(function.parameters(), gradient, 1.0 - static_cast<double>(step) / steps);
  }
  return std::sqrt(mean_square);
}

}  // namespace poise
