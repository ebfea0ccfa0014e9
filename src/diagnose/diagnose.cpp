/// Diagnostics of one series, from half-chains, ranks and bits; and those that papers on discrete samplers report.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <poise/diagnose.hpp>
#include "diagnose/bit_chains.hpp"
#include "diagnose/effective_size.hpp"
#include "diagnose/real_chains.hpp"

namespace poise {
namespace {

namespace detail = diagnose_detail;
using detail::undefined;

bool has_nan(ChainsView series) {
  return std::any_of(series.data, series.data + series.size(), [](double x) { return std::isnan(x); });
}

bool all_finite(ChainsView series) {
  return std::all_of(series.data, series.data + series.size(), [](double x) { return std::isfinite(x); });
}

std::span<const double> pooled(ChainsView series) { return {series.data, series.size()}; }

/// The larger of the two that are defined.
double larger(double a, double b) { return std::fmax(a, b); }

double folded_r_hat(detail::Ranking& ranking) { return detail::r_hat_of(ranking.folded().chains); }

/// ESS, R-hat and its chance, which is that of the smaller of two.
void judge(detail::Ranking& ranking, SeriesSummary& summary) {
  const detail::ScoredChains bulk = ranking.bulk();
  const detail::ScoredChains folded = ranking.folded();
  const double location = detail::r_hat_of(bulk.chains);
  const double spread = detail::r_hat_of(folded.chains);
  summary.ess = detail::ess_of(bulk.chains);
  summary.r_hat = larger(location, spread);
  const double chance = std::min(detail::chance_of(bulk.chains, location), detail::chance_of(folded.chains, spread));
  summary.chance = std::min(1.0, 2 * chance);
}

/// Effective size of 1[x <= bound].
double ess_below(ChainsView series, double bound) {
  detail::BitChains whole;
  whole.reset(series.chains, series.draws);
  for (std::size_t chain = 0; chain < series.chains; ++chain) {
    const std::span<const double> x = series.chain(chain);
    whole.fill(chain, [x, bound](std::size_t i) { return x[i] <= bound; });
  }
  detail::BitChains halves;
  halves.take_halves(whole);
  return detail::mixing_of(halves).ess;
}

double ess_tail_of(ChainsView series, const detail::Ranking& ranking) {
  const double low = ess_below(series, ranking.quantile(0.05));
  const double high = ess_below(series, ranking.quantile(0.95));
  return std::isnan(low) || std::isnan(high) ? undefined : std::min(low, high);
}

/// What the draws are, before anything is estimated from them.
struct Census {
  bool finite = true;
  bool nan = false;
  int distinct = 0;  ///< 1, 2, or 3 for more
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  std::uint64_t transitions = 0;
};

Census take_census(ChainsView series) {
  Census census;
  double seen[2] = {0, 0};
  for (std::size_t chain = 0; chain < series.chains; ++chain) {
    const std::span<const double> x = series.chain(chain);
    for (std::size_t i = 0; i < x.size(); ++i) {
      census.finite = census.finite && std::isfinite(x[i]);
      census.nan = census.nan || std::isnan(x[i]);
      census.low = std::min(census.low, x[i]);
      census.high = std::max(census.high, x[i]);
      if (i > 0 && x[i] != x[i - 1]) ++census.transitions;
      if (census.distinct == 3 || (i > 0 && x[i] == x[i - 1])) continue;
      if (std::find(seen, seen + census.distinct, x[i]) != seen + census.distinct) continue;
      if (census.distinct < 2) seen[census.distinct] = x[i];
      ++census.distinct;
    }
  }
  return census;
}

}  // namespace

double r_hat(ChainsView series) {
  if (series.draws < 4 || series.chains == 0 || has_nan(series)) return undefined;
  detail::Ranking ranking(series);
  return larger(detail::r_hat_of(ranking.bulk().chains), folded_r_hat(ranking));
}

double split_r_hat(ChainsView series) {
  if (series.draws < 4 || series.chains == 0 || !all_finite(series)) return undefined;
  return detail::r_hat_of(detail::split(series));
}

double ess_bulk(ChainsView series) {
  if (series.draws < 6 || series.chains == 0 || has_nan(series)) return undefined;
  return detail::ess_of(detail::Ranking(series).bulk().chains);
}

double ess_mean(ChainsView series) {
  if (series.chains == 0) return undefined;
  return detail::ess_of(detail::split(series));
}

double ess_tail(ChainsView series) {
  if (series.draws < 6 || series.chains == 0 || !all_finite(series)) return undefined;
  return ess_tail_of(series, detail::Ranking(series));
}

double mcse_mean(ChainsView series) {
  const double effective = ess_mean(series);
  if (std::isnan(effective) || !all_finite(series)) return undefined;
  const std::span<const double> x = pooled(series);
  const double squares = detail::squared_deviations(x, detail::mean_of(x));
  return std::sqrt(squares / static_cast<double>(x.size() - 1) / effective);
}

// The delta method on the variance: var(sd) = var(V) / (4 V), with var(V) = (m4 - V^2) / ess.
double mcse_sd(ChainsView series) {
  if (series.draws < 6 || series.chains == 0 || !all_finite(series)) return undefined;
  const std::span<const double> x = pooled(series);
  const double mean = detail::mean_of(x);
  std::vector<double> squares;
  squares.reserve(x.size());
  for (const double value : x) squares.push_back((value - mean) * (value - mean));
  const double effective = ess_mean({squares.data(), series.chains, series.draws});
  if (std::isnan(effective)) return undefined;
  const double variance = detail::mean_of(squares);
  for (double& value : squares) value *= value;
  return std::sqrt((detail::mean_of(squares) - variance * variance) / effective / variance / 4);
}

std::string_view to_string(SeriesStatus status) {
  switch (status) {
    case SeriesStatus::non_finite: return "non_finite";
    case SeriesStatus::constant: return "constant";
    case SeriesStatus::frozen: return "frozen";
    case SeriesStatus::too_short: return "too_short";
    case SeriesStatus::rare: return "rare";
    case SeriesStatus::ok: break;
  }
  return "ok";
}

SeriesSummary summarize(ChainsView series) {
  SeriesSummary summary{undefined, undefined, undefined, undefined, undefined, undefined, 0, SeriesStatus::too_short};
  if (series.size() == 0) return summary;
  const Census census = take_census(series);
  const std::span<const double> x = pooled(series);
  summary.transitions = census.transitions;
  summary.mean = detail::mean_of(x);
  if (!census.finite) {
    summary.status = SeriesStatus::non_finite;
    if (census.nan || series.draws < 4) return summary;
    detail::Ranking ranking(series);
    judge(ranking, summary);
    return summary;
  }
  if (census.high - census.low < std::numeric_limits<double>::epsilon()) {
    summary.sd = 0;
    summary.status = SeriesStatus::constant;
    return summary;
  }
  summary.status = detail::status_of(series.chains, series.draws, census.transitions);
  summary.sd = std::sqrt(detail::squared_deviations(x, summary.mean) / static_cast<double>(x.size() - 1));
  if (series.draws < 4) return summary;
  if (census.distinct == 2) {
    detail::BitChains whole;
    whole.reset(series.chains, series.draws);
    for (std::size_t chain = 0; chain < series.chains; ++chain) {
      const std::span<const double> values = series.chain(chain);
      whole.fill(chain, [values, &census](std::size_t i) { return values[i] == census.high; });
    }
    detail::BitChains halves;
    halves.take_halves(whole);
    const detail::BitMixing mixing = detail::mixing_of(halves);
    summary.ess = mixing.ess;
    summary.r_hat = mixing.r_hat;
    summary.chance = mixing.chance;
    summary.mcse = summary.sd / std::sqrt(summary.ess);
    return summary;
  }
  detail::Ranking ranking(series);
  judge(ranking, summary);
  summary.ess_tail = series.draws < 6 ? undefined : ess_tail_of(series, ranking);
  summary.mcse = summary.sd / std::sqrt(ess_mean(series));
  return summary;
}

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
