/// Errors of transition matrices.
#include <poise/extend/check/exactness.hpp>

namespace poise {

namespace {

/// The larger of two errors; one that is not a number is the largest of all.
double worse(double a, double b) { return std::isnan(a) || b <= a ? a : b; }

}  // namespace

double row_error(const TransitionMatrix& matrix, const StateSpace& space) {
  double worst = 0.0;
  for (std::size_t s = 0; s < space.size(); ++s) {
    if (space.probabilities[s] == 0.0) continue;
    double sum = 0.0;
    for (std::size_t t = 0; t < space.size(); ++t) {
      sum += matrix[s][t];
      worst = worse(worst, -matrix[s][t]);
      if (space.probabilities[t] == 0.0) worst = worse(worst, matrix[s][t]);
    }
    worst = worse(worst, std::abs(sum - 1.0));
  }
  return worst;
}

double detailed_balance_error(const TransitionMatrix& matrix, const StateSpace& space) {
  const std::vector<double>& p = space.probabilities;
  double worst = 0.0;
  for (std::size_t s = 0; s < space.size(); ++s) {
    for (std::size_t t = 0; t < s; ++t) {
      const double larger = std::max(p[s], p[t]);
      if (larger > 0.0) worst = worse(worst, std::abs(p[s] * matrix[s][t] - p[t] * matrix[t][s]) / larger);
    }
  }
  return worst;
}

double invariance_error(const TransitionMatrix& matrix, const StateSpace& space) {
  std::vector<double> after(space.size(), 0.0);
  for (std::size_t s = 0; s < space.size(); ++s) {
    for (std::size_t t = 0; t < space.size(); ++t) after[t] += space.probabilities[s] * matrix[s][t];
  }
  double worst = 0.0;
  for (std::size_t t = 0; t < space.size(); ++t) worst = worse(worst, std::abs(after[t] - space.probabilities[t]));
  return worst;
}

}  // namespace poise
