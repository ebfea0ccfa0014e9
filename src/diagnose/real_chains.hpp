/// Half-chains of real numbers: their moments, autocovariances, R-hat and effective size.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <poise/diagnose.hpp>

namespace poise::diagnose_detail {

/// Chains of equal length that lie somewhere in memory.
struct RealChains {
  std::vector<const double*> starts;
  std::size_t length = 0;
};

/// The first and the last floor(n/2) draws of every chain; an odd n drops the middle one.
RealChains split(ChainsView series);

/// Whether posterior would refuse a mean: some value not finite, or all values equal up to epsilon.
bool has_no_spread(const RealChains& chains);

double r_hat_of(const RealChains& chains);
double ess_of(const RealChains& chains);

/// Sums in extended precision, as R does, so that long series of large numbers agree to the last digits.
double mean_of(std::span<const double> values);

/// Sum of squared deviations from `center`, likewise.
double squared_deviations(std::span<const double> values, double center);

/// Autocovariances at all lags times n, summed over centred chains that follow each other in `centered`. By FFT.
std::vector<double> summed_autocovariance(std::span<const double> centered, std::size_t length);

}  // namespace poise::diagnose_detail
