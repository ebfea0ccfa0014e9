/// Moments and autocovariances of real half-chains, by lags while that is cheap, then by FFT; ranks as R has them.
#include "diagnose/real_chains.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <iterator>
#include <limits>

#include <Eigen/Core>
#include <boost/math/distributions/normal.hpp>
#include <unsupported/Eigen/FFT>

#include "diagnose/effective_size.hpp"

namespace poise::diagnose_detail {
namespace {

/// Lags taken one by one before the FFT is called for the rest: about as many as the FFT costs.
constexpr std::size_t direct_lags = 96;
constexpr std::size_t lags_at_once = 16;

/// Smallest 2^a 3^b 5^c that is at least n: the FFT is fast there.
std::size_t fast_length(std::size_t n) {
  std::size_t best = 1;
  while (best < n) best *= 2;
  for (std::size_t fives = 1; fives < best; fives *= 5) {
    for (std::size_t odd = fives; odd < best; odd *= 3) {
      std::size_t size = odd;
      while (size < n) size *= 2;
      best = std::min(best, size);
    }
  }
  return best;
}

struct Moments {
  double variance_of_means = 0;
  double mean_of_variances = 0;
  std::vector<double> means;
};

/// `means` and the two variances (ddof 1). A chain that stands still has its own value as mean and variance zero, free
/// of rounding: a frozen chain must not look as if it moved a little.
Moments moments_of(const RealChains& chains) {
  Moments result;
  for (const double* start : chains.starts) {
    const std::span<const double> chain(start, chains.length);
    if (std::all_of(chain.begin(), chain.end(), [&](double x) { return x == chain.front(); })) {
      result.means.push_back(chain.front());
      continue;
    }
    const double mean = mean_of(chain);
    result.means.push_back(mean);
    result.mean_of_variances += squared_deviations(chain, mean) / static_cast<double>(chains.length - 1);
  }
  const auto count = static_cast<double>(chains.starts.size());
  result.mean_of_variances /= count;
  result.variance_of_means = squared_deviations(result.means, mean_of(result.means)) / (count - 1);
  return result;
}

/// Autocovariance averaged over the chains, found as far as it is asked for.
class MeanAutocovariance {
 public:
  MeanAutocovariance(const RealChains& chains, const std::vector<double>& means) : length_(chains.length) {
    centered_.reserve(means.size() * length_);
    for (std::size_t chain = 0; chain < means.size(); ++chain) {
      for (std::size_t i = 0; i < length_; ++i) centered_.push_back(chains.starts[chain][i] - means[chain]);
    }
  }

  double operator()(std::size_t lag) {
    while (lag >= sums_.size()) extend();
    return sums_[lag] / static_cast<double>(centered_.size());
  }

 private:
  void extend() {
    if (sums_.size() >= direct_lags) {
      sums_ = summed_autocovariance(centered_, length_);
      return;
    }
    const std::size_t from = sums_.size();
    const std::size_t to = std::min(from + lags_at_once, length_);
    sums_.resize(to, 0.0);
    using Vector = Eigen::Map<const Eigen::VectorXd>;
    for (std::size_t start = 0; start < centered_.size(); start += length_) {
      for (std::size_t lag = from; lag < to; ++lag) {
        const auto overlap = static_cast<Eigen::Index>(length_ - lag);
        const double* chain = centered_.data() + start;
        sums_[lag] += Vector(chain, overlap).dot(Vector(chain + lag, overlap));
      }
    }
  }

  std::size_t length_;
  std::vector<double> centered_;
  std::vector<double> sums_;
};

}  // namespace

RealChains split(ChainsView series) {
  RealChains result;
  result.length = series.draws / 2;
  for (std::size_t chain = 0; chain < series.chains; ++chain) {
    const double* start = series.data + chain * series.draws;
    result.starts.push_back(start);
    result.starts.push_back(start + series.draws - result.length);
  }
  return result;
}

bool has_no_spread(const RealChains& chains) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double* start : chains.starts) {
    for (std::size_t i = 0; i < chains.length; ++i) {
      if (!std::isfinite(start[i])) return true;
      low = std::min(low, start[i]);
      high = std::max(high, start[i]);
    }
  }
  return !(high - low >= std::numeric_limits<double>::epsilon());
}

double r_hat_of(const RealChains& chains) {
  if (chains.length < 2 || has_no_spread(chains)) return undefined;
  const Moments moments = moments_of(chains);
  return split_r_hat(chains.length, moments.variance_of_means, moments.mean_of_variances);
}

double ess_of(const RealChains& chains) {
  if (chains.length < 3 || has_no_spread(chains)) return undefined;
  const Moments moments = moments_of(chains);
  MeanAutocovariance lag(chains, moments.means);
  return effective_size(chains.starts.size(), chains.length, moments.variance_of_means, lag);
}

double chance_of(const RealChains& chains, double r_hat) {
  if (chains.length < 3 || !(r_hat > r_hat_limit)) return 1;
  const Moments moments = moments_of(chains);
  MeanAutocovariance lag(chains, moments.means);
  return chance_of_r_hat(chains.starts.size(), chains.length, r_hat,
                         effective_if_stationary(chains.starts.size(), chains.length, moments.variance_of_means, lag));
}

double mean_of(std::span<const double> values) {
  long double sum = 0;
  for (const double x : values) sum += x;
  const long double mean = sum / static_cast<long double>(values.size());
  if (!std::isfinite(static_cast<double>(mean))) return static_cast<double>(mean);
  long double rest = 0;
  for (const double x : values) rest += x - mean;
  return static_cast<double>(mean + rest / static_cast<long double>(values.size()));
}

double squared_deviations(std::span<const double> values, double center) {
  long double sum = 0;
  for (const double x : values) {
    const long double deviation = static_cast<long double>(x) - center;
    sum += deviation * deviation;
  }
  return static_cast<double>(sum);
}

// Two real chains travel as one complex chain z = a + ib: the real part of sum_i conj(z_i) z_{i+t} is the sum of both
// autocovariances. The power spectra of all pairs add up, so that one inverse transform is enough.
std::vector<double> summed_autocovariance(std::span<const double> centered, std::size_t length) {
  using Complex = std::complex<double>;
  const std::size_t chains = centered.size() / length;
  const std::size_t size = fast_length(2 * length);
  const auto fft_size = static_cast<Eigen::Index>(size);
  Eigen::FFT<double> fft;
  std::vector<Complex> signal(size);
  std::vector<Complex> spectrum(size);
  std::vector<Complex> power(size);
  for (std::size_t pair = 0; pair < chains; pair += 2) {
    std::fill(signal.begin(), signal.end(), Complex{});
    for (std::size_t i = 0; i < length; ++i) {
      const double second = pair + 1 < chains ? centered[(pair + 1) * length + i] : 0.0;
      signal[i] = {centered[pair * length + i], second};
    }
    fft.fwd(spectrum.data(), signal.data(), fft_size);
    for (std::size_t k = 0; k < size; ++k) power[k] += std::norm(spectrum[k]);
  }
  fft.inv(signal.data(), power.data(), fft_size);
  std::vector<double> sums(length);
  for (std::size_t t = 0; t < length; ++t) sums[t] = signal[t].real();
  return sums;
}

double NormalScores::operator()(std::size_t twice_rank) {
  using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
  const std::size_t mirrored = 2 * (size_ + 1) - twice_rank;
  double& score = lower_[std::min(twice_rank, mirrored)];
  if (score == unknown) {
    const double rank = 0.5 * static_cast<double>(std::min(twice_rank, mirrored));
    score = boost::math::quantile(boost::math::normal_distribution<double, Policy>(),
                                  (rank - 0.375) / (static_cast<double>(size_) + 0.25));
  }
  return twice_rank > mirrored ? -score : score;
}

Ranking::Ranking(ChainsView series)
    : chains_(series.chains), draws_(series.draws), normal_score_(series.chains * (series.draws / 2) * 2) {
  sorted_.reserve(series.size());
  for (std::size_t i = 0; i < series.size(); ++i) sorted_.push_back({series.data[i], i});
  std::sort(sorted_.begin(), sorted_.end(), [](const Draw& a, const Draw& b) { return a.value < b.value; });
}

double Ranking::quantile(double probability) const {
  const double index = static_cast<double>(sorted_.size() - 1) * probability;
  const double below = std::floor(index);
  const double low = sorted_[static_cast<std::size_t>(below)].value;
  const double high = sorted_[static_cast<std::size_t>(std::ceil(index))].value;
  if (index == below || low == high) return low;
  // R counts from 1, and its weight carries the rounding of that sum: indicators of x <= Q must not depend on it.
  const double weight = (1 + index) - (1 + below);
  return (1 - weight) * low + weight * high;
}

double Ranking::median() const {
  const std::size_t middle = sorted_.size() / 2;
  const double high = sorted_[middle].value;
  if (sorted_.size() % 2 == 1) return high;
  return static_cast<double>((static_cast<long double>(sorted_[middle - 1].value) + high) / 2);
}

ScoredChains Ranking::bulk() { return score(sorted_); }

ScoredChains Ranking::folded() {
  const double center = median();
  if (!std::isfinite(center)) return {};
  // The distance grows away from the center on both sides, so that merging the two sides sorts it.
  const auto split_point =
      std::partition_point(sorted_.begin(), sorted_.end(), [center](const Draw& draw) { return draw.value < center; });
  std::vector<Draw> ascending;
  ascending.reserve(sorted_.size());
  auto right = split_point;
  auto left = std::make_reverse_iterator(split_point);
  while (right != sorted_.end() || left != sorted_.rend()) {
    const bool take_right = left == sorted_.rend() || (right != sorted_.end() && std::abs(right->value - center) <=
                                                                                     std::abs(left->value - center));
    const Draw& next = take_right ? *right++ : *left++;
    ascending.push_back({std::abs(next.value - center), next.position});
  }
  return score(ascending);
}

ScoredChains Ranking::score(const std::vector<Draw>& ascending) {
  const std::size_t half = draws_ / 2;
  const std::size_t split_size = 2 * half * chains_;
  ScoredChains result;
  result.scores.resize(split_size);
  const std::size_t dropped = draws_ % 2 == 1 ? half : draws_;  // the middle draw of an odd chain
  std::size_t ranked = 0;
  for (std::size_t first = 0; first < ascending.size();) {
    std::size_t last = first;
    std::size_t tied = 0;
    for (; last < ascending.size() && ascending[last].value == ascending[first].value; ++last) {
      if (ascending[last].position % draws_ != dropped) ++tied;
    }
    const double score = tied == 0 ? 0 : normal_score_(2 * ranked + tied + 1);
    for (; first < last; ++first) {
      const std::size_t chain = ascending[first].position / draws_;
      const std::size_t draw = ascending[first].position % draws_;
      if (draw == dropped) continue;
      result.scores[2 * half * chain + (draw < half ? draw : draw - (draws_ - 2 * half))] = score;
    }
    ranked += tied;
  }
  result.chains.length = half;
  for (std::size_t start = 0; half > 0 && start < split_size; start += half) {
    result.chains.starts.push_back(result.scores.data() + start);
  }
  return result;
}

}  // namespace poise::diagnose_detail
