/// Half-chains of real numbers: moments, autocovariances, R-hat, effective sample size, and ranks of all draws.
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
/// Probability of so large an R-hat by chance; 1 where it is not over its limit, for then it is not needed.
double chance_of(const RealChains& chains, double r_hat);

/// Sums in extended precision, as R does, so that long series of large numbers agree to the last digits.
double mean_of(std::span<const double> values);

/// Sum of squared deviations from `center`, likewise.
double squared_deviations(std::span<const double> values, double center);

/// Autocovariances at all lags times n, summed over centred chains that follow each other in `centered`. By FFT.
std::vector<double> summed_autocovariance(std::span<const double> centered, std::size_t length);

/// Normal scores in the layout of the half-chains, `chains` pointing into `scores`.
struct ScoredChains {
  std::vector<double> scores;
  RealChains chains;
};

/// Normal scores of the ranks 1 .. size, each worked out at most once. Twice a rank is a whole number, also after
/// averaging over ties.
class NormalScores {
 public:
  explicit NormalScores(std::size_t size) : size_(size), lower_(size + 2, unknown) {}
  double operator()(std::size_t twice_rank);

 private:
  static constexpr double unknown = 1;  // no score of the lower half is positive

  std::size_t size_;
  std::vector<double> lower_;  // by twice the rank; the upper half is its mirror image
};

/// Sorts once what bulk, folded and tail diagnostics all need. No value may be NaN.
class Ranking {
 public:
  explicit Ranking(ChainsView series);

  /// Quantile of all draws (unsplit) by linear interpolation: type 7 in R.
  [[nodiscard]] double quantile(double probability) const;

  /// Scores of the split draws: ranks r, averaged over ties, become the normal quantile of (r - 3/8) / (S + 1/4).
  [[nodiscard]] ScoredChains bulk();

  /// The same of |x - median|, the median being that of the unsplit draws. No chains when the median is infinite.
  [[nodiscard]] ScoredChains folded();

 private:
  struct Draw {
    double value;
    std::size_t position;  ///< chain * draws + draw
  };
  [[nodiscard]] double median() const;
  [[nodiscard]] ScoredChains score(const std::vector<Draw>& ascending);

  std::size_t chains_;
  std::size_t draws_;
  std::vector<Draw> sorted_;
  NormalScores normal_score_;
};

}  // namespace poise::diagnose_detail
