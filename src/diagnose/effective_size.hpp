/// Formulas behind every diagnostic: R-hat and effective sample size from autocovariances; the status of a series.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <poise/diagnose.hpp>

namespace poise::diagnose_detail {

inline constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

/// R-hat of chains of n draws from the variance of their means and the mean of their variances (both with ddof 1).
inline double split_r_hat(std::size_t n, double variance_of_means, double mean_of_variances) {
  if (n < 2) return undefined;
  if (mean_of_variances == 0) {
    return variance_of_means > 0 ? std::numeric_limits<double>::infinity() : undefined;
  }
  const auto length = static_cast<double>(n);
  return std::sqrt((length * variance_of_means / mean_of_variances + length - 1) / length);
}

/// Geyer's initial monotone sequence over m chains of n >= 3 draws. `lag(t)` is the autocovariance at lag t divided by
/// n and averaged over the chains; it is asked for t = 0, 1, 2, ... in turn and only as far as the sum goes.
template <class Lag>
double effective_size(std::size_t m, std::size_t n, double variance_of_means, Lag&& lag) {
  const auto length = static_cast<double>(n);
  const double pooled = lag(0);
  const double within = pooled * length / (length - 1);
  const double total = within * (length - 1) / length + variance_of_means;
  const auto correlation = [&](std::size_t t) { return 1 - (within - lag(t)) / total; };

  double even = 1;
  double odd = correlation(1);
  std::vector<double> rho{even, odd};
  std::size_t last = 0;
  while (last + 5 < n && even + odd > 0) {
    last += 2;
    even = correlation(last);
    odd = correlation(last + 1);
    const bool keep = even + odd >= 0;
    rho.push_back(keep ? even : 0);
    rho.push_back(keep ? odd : 0);
  }
  if (even > 0) rho[last] = even;
  for (std::size_t t = 2; t + 2 <= last; t += 2) {
    const double before = rho[t - 2] + rho[t - 1];
    if (rho[t] + rho[t + 1] > before) rho[t] = rho[t + 1] = before / 2;
  }
  // With last = 0 the lag 0 still counts in the sum: so does posterior, and very short chains then have tau = 2.
  double sum = 0;
  for (std::size_t t = 0; t < std::max<std::size_t>(last, 1); ++t) sum += rho[t];
  const double draws = static_cast<double>(m) * length;
  const double tau = std::max(-1 + 2 * sum + rho[last], 1 / std::log10(draws));
  return draws / tau;
}

/// Probability of an R-hat of at least that of m half-chains of n draws, were they stationary and independent of each
/// other: see chance.cpp. `effective` is what all draws would then be worth; where that is estimated from batches,
/// `degrees` bounds how well it is known.
double chance_of_r_hat(std::size_t m, std::size_t n, double r_hat, double effective,
                       double degrees = std::numeric_limits<double>::infinity());

/// The effective size if the means of half-chains varied as stationarity has it, and no more than they do.
template <class Lag>
double effective_if_stationary(std::size_t m, std::size_t n, double variance_of_means, Lag&& lag) {
  const auto length = static_cast<double>(n);
  const double within = lag(0) * length / (length - 1);
  double expected = 0;
  for (int round = 0; round < 2; ++round) {
    expected = std::min(variance_of_means, within * static_cast<double>(m) / effective_size(m, n, expected, lag));
  }
  return effective_size(m, n, expected, lag);
}

/// Whether chance does not explain an R-hat over its limit, of the largest among so many (Bonferroni).
inline bool is_high(double chance, std::size_t tests) { return chance * static_cast<double>(tests) < chance_limit; }

/// Probability that is worth a warning: a level that is missing, or an error, below it moves no marginal by more.
inline constexpr double worth_a_warning = 0.02;

/// Draws per chain from which lags are looked at.
inline constexpr std::size_t fewest_draws = 12;

inline SeriesStatus status_of(std::size_t chains, std::size_t draws, std::uint64_t transitions) {
  if (transitions == 0) return SeriesStatus::frozen;
  if (draws < fewest_draws) return SeriesStatus::too_short;
  if (transitions < rare_transitions && 10 * transitions < chains * (draws - 1)) return SeriesStatus::rare;
  return SeriesStatus::ok;
}

}  // namespace poise::diagnose_detail
