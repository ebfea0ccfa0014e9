/// Small dense algebra for one set of variables.
#include "models/selection/coefficients.hpp"

#include <cmath>

namespace poise {

namespace {

/// The inverse and log det of a positive definite matrix by rows; false where it is not.
bool invert(std::vector<double>& m, std::size_t s, double& log_det, const std::vector<double>& least) {
  // Gauss and Jordan without pivoting, which positive definite matrices do not need.
  for (std::size_t k = 0; k < s; ++k) {
    const double pivot = m[k * s + k];
    if (!(pivot > least[k])) return false;
    log_det += std::log(pivot);
    m[k * s + k] = 1.0;
    for (std::size_t j = 0; j < s; ++j) m[k * s + j] /= pivot;
    for (std::size_t i = 0; i < s; ++i) {
      if (i == k) continue;
      const double factor = m[i * s + k];
      m[i * s + k] = 0.0;
      for (std::size_t j = 0; j < s; ++j) m[i * s + j] -= factor * m[k * s + j];
    }
  }
  return true;
}

}  // namespace

std::vector<CoefficientPart> coefficients_of(const SelectionLaw& law, const std::vector<Index>& set) {
  const std::size_t s = set.size();
  std::vector<double> gram(s * s);
  std::vector<double> least(s, 0.0);
  for (std::size_t i = 0; i < s; ++i) {
    for (std::size_t k = 0; k <= i; ++k) gram[i * s + k] = gram[k * s + i] = law.products().entry(set[i], set[k]);
    if (law.is_g_prior()) least[i] = law.least_v()[set[i]];
  }
  std::vector<CoefficientPart> parts;
  for (std::size_t number = 0; number < law.parts(); ++number) {
    std::vector<double> inverse = gram;
    for (std::size_t i = 0; i < s; ++i) inverse[i * s + i] += law.ridge(number);
    double log_det = 0.0;
    if (!invert(inverse, s, log_det, least)) return {};
    CoefficientPart part;
    double fitted = 0.0;
    for (std::size_t i = 0; i < s; ++i) {
      double sum = 0.0;
      for (std::size_t k = 0; k < s; ++k) sum += inverse[i * s + k] * law.xty()[set[k]];
      fitted += sum * law.xty()[set[i]];
      part.mean.push_back(law.explained(number) * sum);
    }
    fitted *= law.explained(number);
    const double rest = law.yty() - fitted;
    const double volume = static_cast<double>(s) * law.log_slab(number) - law.half() * log_det;
    const bool known = law.residual_variance().has_value();
    part.log_likelihood = volume + (known ? fitted / (2.0 * *law.residual_variance())
                                          : -0.5 * law.observations() * std::log1p(-fitted / law.yty()));
    const double variance = known ? *law.residual_variance() : rest / law.observations();
    for (std::size_t i = 0; i < s; ++i) {
      part.scale.push_back(std::sqrt(law.explained(number) * variance * inverse[i * s + i]));
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

double student_cdf(double t, double degrees) {
  double z = t;
  if (std::isfinite(degrees)) {
    const double size = std::sqrt(degrees * std::log1p(t * t / degrees));
    z = std::copysign((8.0 * degrees + 1.0) / (8.0 * degrees + 3.0) * size, t);
  }
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

}  // namespace poise
