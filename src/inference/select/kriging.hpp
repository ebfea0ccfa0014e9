/// How well z scores go with correlations R: what each z should be given the others, which are sign errors, and how
/// likely all of them are.
///
/// z ~ N(sqrt(n) R b, R_s) with R_s = (1 - s) R + s I, where s says how far R is from the truth and b has few effects.
/// With Omega the inverse of R_s, z_i given the others is normal with mean z_i - (Omega z)_i / Omega_ii and variance
/// 1 / Omega_ii; as Omega R b = b but for s, effects elsewhere leave that as it is, so only the variants that have
/// effects deviate. An effect at j makes z more likely by half its squared conditional z score; effects are added
/// greedily, each at a price.
#pragma once

#include <vector>

#include <poise/types.hpp>
#include "models/selection/cholesky.hpp"

namespace poise {

/// z scores under one s.
struct KrigingFit {
  std::vector<double> z;         ///< after reversing the signs of `flipped`
  std::vector<double> expected;  ///< given the others
  std::vector<double> error;     ///< standard deviation of that
  std::vector<Index> flipped;    ///< whose reversed sign is what the others say, in the order found
  std::vector<Index> effects;    ///< what greedy addition finds
  double log_likelihood = 0.0;   ///< less the prices of flips and effects; without the constant of the normal density
};

class Kriging {
 public:
  /// Nothing where R_s is not positive definite.
  [[nodiscard]] static std::optional<Kriging> make(const DenseCrossProducts& r, double shrinkage);
  [[nodiscard]] KrigingFit fit(std::vector<double> z) const;

 private:
  Kriging(const DenseCrossProducts& r, double shrinkage, LowerTriangle inverse, double log_det);
  /// Omega z.
  [[nodiscard]] std::vector<double> weigh(const std::vector<double>& z) const;
  void reverse_signs(KrigingFit& fit, std::vector<double>& weighed) const;
  /// Adds effects; gives the log likelihood they gain less their prices.
  [[nodiscard]] double add_effects(KrigingFit& fit) const;

  const DenseCrossProducts* r_;
  double shrinkage_;
  LowerTriangle inverse_;          // of the Cholesky factor
  double log_det_;                 // of R_s
  std::vector<double> precision_;  // the diagonal of Omega
};

}  // namespace poise
