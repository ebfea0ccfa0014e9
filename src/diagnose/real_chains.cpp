/// Moments and autocovariances of real half-chains, lag by lag while that is cheap and by FFT after.
#include "diagnose/real_chains.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include <Eigen/Core>
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

}  // namespace poise::diagnose_detail
