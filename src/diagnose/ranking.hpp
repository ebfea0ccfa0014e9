/// The draws of all chains in order: quantiles, and normal scores of the ranks.
#pragma once

#include <cstddef>
#include <vector>

#include <poise/diagnose.hpp>

#include "diagnose/real_chains.hpp"

namespace poise::diagnose_detail {

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
