/// How often chance alone makes R-hat as large as it is.
///
/// Take M half-chains of n draws, V the variance of their means and W the mean of their variances, so that
/// R-hat^2 = (n - 1)/n + V/W. Let all of them be stationary and independent of each other, and let n_e of the draws of
/// a half-chain be worth as much as independent ones. A mean then has the variance sigma^2/n_e, so (M - 1) n_e
/// V/sigma^2 is chi-square with M - 1 degrees of freedom, while W estimates sigma^2 with about M (n_e - 1). Their ratio
///   n_e V/W = n_e (R-hat^2 - (n - 1)/n) ~ F(M - 1, M (n_e - 1))
/// is the F statistic of an analysis of variance. n_e comes from autocorrelations within half-chains: an effective size
/// that counts disagreement as correlation, as the one that is reported does, would explain away what is tested here.
#include "diagnose/effective_size.hpp"

#include <boost/math/special_functions/beta.hpp>

namespace poise::diagnose_detail {

double chance_of_r_hat(std::size_t chains, std::size_t length, double r_hat, double effective) {
  if (std::isinf(r_hat)) return 0.0;
  const auto n = static_cast<double>(length);
  const auto m = static_cast<double>(chains);
  const double draws = effective / m;
  const double f = draws * (r_hat * r_hat - (n - 1) / n);
  const double between = m - 1;
  const double within = std::max(1.0, m * (draws - 1));
  return boost::math::ibeta(within / 2, between / 2, within / (within + between * f));
}

}  // namespace poise::diagnose_detail
