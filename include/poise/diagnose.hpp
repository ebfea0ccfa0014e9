/// How far to trust the draws of one number per draw (a monitor): R-hat, effective sample sizes, Monte Carlo error.
///
/// The definitions are those of Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), and the numbers agree with the
/// R package posterior to rounding. A quantity that is undefined is NaN, where posterior says NA: always so for a
/// series that is constant, too short, or holds a NaN. We part from posterior in three places, each on purpose:
///   - r_hat is the larger of the bulk and the folded part *that is defined*. The folded part of an exactly balanced
///     two-valued series is not (|x - median| is constant), and the bulk part alone then says all there is to say.
///   - r_hat of half-chains that are all constant, but not at one value, is +infinity; posterior gives infinity, NA or
///     about 1e15, as rounding has it.
///   - two or three draws per chain give NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <poise/types.hpp>

namespace poise {

/// One number per draw, of several chains of equal length: the value of (chain, draw) is data[chain * draws + draw].
struct ChainsView {
  const double* data = nullptr;
  std::size_t chains = 0;
  std::size_t draws = 0;  ///< per chain

  [[nodiscard]] std::size_t size() const { return chains * draws; }
  [[nodiscard]] std::span<const double> chain(std::size_t which) const { return {data + which * draws, draws}; }
};

/// Rank-normalised split R-hat: 1 when all half-chains look alike, in location (bulk) and in spread (folded).
/// Needs 4 draws. Infinite values are legal, for only their ranks count.
[[nodiscard]] double r_hat(ChainsView series);

/// Split R-hat of the values themselves. Ranks of a few chains cannot be far apart; values can, and this number says
/// so. +infinity when no half-chain varies and they differ, NaN when nothing varies or a value is not finite.
[[nodiscard]] double split_r_hat(ChainsView series);

/// Effective sample size of the rank-normalised draws: how well the middle of the distribution is known.
/// Needs 6 draws, like every effective sample size below; under 12 no lag is looked at and the result is half the
/// number of draws, whatever they are. Infinite values are legal.
[[nodiscard]] double ess_bulk(ChainsView series);

/// Effective sample size for the mean. NaN if any value is infinite, as in all the functions below.
[[nodiscard]] double ess_mean(ChainsView series);

/// The smaller of the effective sample sizes of 1[x <= Q] at the 5 % and the 95 % quantile Q. NaN when one of them is
/// undefined, as when more than 5 % of the draws share the largest value.
[[nodiscard]] double ess_tail(ChainsView series);

/// Monte Carlo standard error of the mean: sd / sqrt(ess_mean).
[[nodiscard]] double mcse_mean(ChainsView series);

/// Monte Carlo standard error of the standard deviation.
[[nodiscard]] double mcse_sd(ChainsView series);

/// Autocorrelation of one chain at lags 0 .. n-1, the autocovariance at every lag divided by n (the biased estimate).
/// All NaN for a constant chain.
[[nodiscard]] std::vector<double> autocorrelation(std::span<const double> chain);

/// `tfp`: the estimator of TensorFlow Probability, n / (-1 + 2 sum rho_t) with the sum over t = 0, 1, ... up to the
/// first negative rho_t. Undefined counts as 1, as is the habit in the papers that use it.
[[nodiscard]] double ess_tfp(std::span<const double> chain);

/// `window`: (L+1) / (1 + 2 sum over {1 <= j <= L : rho_j > 0.05} of rho_j (1 - j/(L+1))), so a number out of L+1.
/// Throws InputError unless L = lags is less than the number of draws. NaN for a constant chain.
[[nodiscard]] double ess_window(std::span<const double> chain, std::size_t lags);

/// What to think of a series before looking at its numbers. The first that applies, in this order.
enum class SeriesStatus : std::uint8_t {
  non_finite,  ///< holds NaN (nothing is defined) or infinities (r_hat and ess are, being made from ranks)
  constant,    ///< all draws of all chains are equal: neither good nor bad, there is nothing to estimate from
  frozen,      ///< no chain ever moved, and they stand at different values: r_hat is infinite
  too_short,   ///< under 12 draws per chain: see ess_bulk
  rare,        ///< few transitions: one short excursion in 4000 draws has an ESS of 4000 and an R-hat of 1
  ok,
};

/// "ok", "constant", ...: the names above.
[[nodiscard]] std::string_view to_string(SeriesStatus status);

/// A series is `rare` with fewer transitions than this in all chains together and in under a tenth of the steps. Twenty
/// transitions are ten excursions: the frequency of what they visit is then known to about 1/sqrt(10), a third.
inline constexpr std::uint64_t rare_transitions = 20;

/// All there is to say of one series. Undefined numbers are NaN.
struct SeriesSummary {
  using Status = SeriesStatus;
  double mean;
  double sd;
  double mcse;                ///< of the mean
  double ess;                 ///< bulk; for two values that is the same as for the mean
  double ess_tail;            ///< NaN under three distinct values
  double r_hat;               ///< +infinity when frozen
  std::uint64_t transitions;  ///< draws that differ from the draw before, over all chains
  Status status;
};

[[nodiscard]] SeriesSummary summarize(ChainsView series);

}  // namespace poise
