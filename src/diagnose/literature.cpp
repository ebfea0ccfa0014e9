/// Autocorrelation of a single chain and the two effective sizes that papers on discrete samplers report.
#include <algorithm>
#include <cmath>
#include <string>

#include <poise/diagnose.hpp>

#include "diagnose/effective_size.hpp"
#include "diagnose/real_chains.hpp"

namespace poise {

std::vector<double> autocorrelation(std::span<const double> chain) {
  namespace detail = diagnose_detail;
  if (chain.empty()) return {};
  if (detail::has_no_spread({{chain.data()}, chain.size()})) {
    return std::vector<double>(chain.size(), detail::undefined);
  }
  const double mean = detail::mean_of(chain);
  std::vector<double> centered(chain.begin(), chain.end());
  for (double& value : centered) value -= mean;
  std::vector<double> rho = detail::summed_autocovariance(centered, chain.size());
  const double variance = rho.front();
  for (double& value : rho) value /= variance;
  return rho;
}

double ess_tfp(std::span<const double> chain) {
  const std::vector<double> rho = autocorrelation(chain);
  if (rho.empty() || std::isnan(rho.front())) return 1;
  double sum = 0;
  for (std::size_t lag = 0; lag < rho.size() && rho[lag] >= 0; ++lag) sum += rho[lag];
  return static_cast<double>(chain.size()) / (-1 + 2 * sum);
}

double ess_window(std::span<const double> chain, std::size_t lags) {
  if (lags >= chain.size()) {
    throw InputError("the window estimator was asked for " + std::to_string(lags) + " lags, but a chain has only " +
                     std::to_string(chain.size()) + " draws: use fewer lags");
  }
  const std::vector<double> rho = autocorrelation(chain);
  if (std::isnan(rho.front())) return diagnose_detail::undefined;
  const double window = static_cast<double>(lags) + 1;
  double sum = 0;
  for (std::size_t lag = 1; lag <= lags; ++lag) {
    if (rho[lag] > 0.05) sum += rho[lag] * (1 - static_cast<double>(lag) / window);
  }
  return window / (1 + 2 * sum);
}

}  // namespace poise
