/// How often chance alone makes R-hat as large as it is.
///
/// Take M half-chains of n draws, V the variance of their means and W the mean of their variances, so that
/// R-hat^2 = (n - 1)/n + V/W. Let all of them be stationary and independent of each other, and let n_e of the draws of
/// a half-chain be worth as much as independent ones. A mean then has the variance sigma^2/n_e, so (M - 1) n_e
/// V/sigma^2 is chi-square with M - 1 degrees of freedom, and with an estimate of sigma^2/n_e
///   n_e V/W = n_e (R-hat^2 - (n - 1)/n) ~ F(M - 1, nu)
/// is the F statistic of an analysis of variance.
///
/// n_e needs care. The effective size that is reported adds V to the autocovariances, which counts disagreement as
/// correlation and would explain away what is tested. Nothing added is too little: deviations from the mean of a
/// half-chain have autocovariances that are too small by the variance of that mean, and n_e came out 2 to 23 % too
/// large for series worth over 100 draws. What is added is the variance that the hypothesis predicts, W/n_e, which
/// takes n_e itself: a fixed point, near enough after three rounds.
///
/// nu is what the estimate of sigma^2/n_e is worth: its relative variance was 6 to 8 over the effective size E of all
/// draws, so 2/variance is E/3; but it is skewed towards small values, and of E/3 and E/6 the latter gives the right
/// tail. In 25 thousand simulated two-valued series of 2 to 64 chains that are worth 40 to 7000 draws, the chance was
/// under 0.001 in 0.0007 of the cases, and in at most 0.0025 of a kind (up to 0.017 with nothing added and
/// nu = M (n_e - 1)).
#include "diagnose/effective_size.hpp"

#include <boost/math/special_functions/beta.hpp>

namespace poise::diagnose_detail {

double chance_of_r_hat(std::size_t chains, std::size_t length, double r_hat, double effective, double degrees) {
  if (std::isinf(r_hat)) return 0.0;
  const auto n = static_cast<double>(length);
  const auto m = static_cast<double>(chains);
  const double f = effective / m * (r_hat * r_hat - (n - 1) / n);
  const double between = m - 1;
  const double within = std::max(1.0, std::min(effective / 6, degrees));
  return boost::math::ibeta(within / 2, between / 2, within / (within + between * f));
}

}  // namespace poise::diagnose_detail
