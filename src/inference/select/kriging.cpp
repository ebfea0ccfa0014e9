/// Conditional means by the inverse of the Cholesky factor.
#include "inference/select/kriging.hpp"

#include <algorithm>
#include <cmath>

namespace poise {

namespace {

/// Log likelihood that a reversed sign or an effect gains at least, beyond the log of the number of variants.
constexpr double kPrice = 5.0;
/// Deviation, in standard errors, that a reversed z may still have from what the others say.
constexpr double kMirrored = 4.0;
/// z scores below this are too small to tell their sign.
constexpr double kLeastFlipped = 2.0;
constexpr std::size_t kMostEffects = 10;

}  // namespace

std::optional<Kriging> Kriging::make(const DenseCrossProducts& r, double shrinkage) {
  const std::optional<LowerTriangle> l = cholesky(r, shrinkage, 0.0);
  if (!l) return std::nullopt;
  double log_det = 0.0;
  for (Index i = 0; i < r.size(); ++i) log_det += 2.0 * std::log(l->row(i)[i]);
  return Kriging(r, shrinkage, inverse_of(*l), log_det);
}

Kriging::Kriging(const DenseCrossProducts& r, double shrinkage, LowerTriangle inverse, double log_det)
    : r_(&r), shrinkage_(shrinkage), inverse_(std::move(inverse)), log_det_(log_det), precision_(r.size(), 0.0) {
  for (Index k = 0; k < inverse_.size(); ++k) {
    for (Index i = 0; i <= k; ++i) precision_[i] += inverse_.row(k)[i] * inverse_.row(k)[i];
  }
}

std::vector<double> Kriging::weigh(const std::vector<double>& z) const {
  std::vector<double> out(z.size(), 0.0);
  for (Index k = 0; k < inverse_.size(); ++k) {
    const double* const row = inverse_.row(k);
    double white = 0.0;
    for (Index i = 0; i <= k; ++i) white += row[i] * z[i];
    for (Index i = 0; i <= k; ++i) out[i] += row[i] * white;
  }
  return out;
}

void Kriging::reverse_signs(KrigingFit& fit, std::vector<double>& weighed) const {
  std::vector<double>& z = fit.z;
  const double price = kPrice + std::log(static_cast<double>(z.size()));
  std::vector<char> tried(z.size(), 0);
  while (fit.flipped.size() < std::max<std::size_t>(1, z.size() / 10)) {
    Index best = 0;
    double most = price;
    for (Index i = 0; i < z.size(); ++i) {
      const double error = 1.0 / std::sqrt(precision_[i]);
      const double apart = weighed[i] * error;
      const double mirrored = apart - 2.0 * z[i] / error;
      const double gain = 0.5 * (apart * apart - mirrored * mirrored);
      if (tried[i] != 0 || !(gain > most) || std::abs(mirrored) > kMirrored || std::abs(z[i]) < kLeastFlipped) continue;
      most = gain;
      best = i;
    }
    if (!(most > price)) break;
    for (Index k = best; k < inverse_.size(); ++k) {
      const double factor = 2.0 * z[best] * inverse_.row(k)[best];
      for (Index i = 0; i <= k; ++i) weighed[i] -= factor * inverse_.row(k)[i];
    }
    z[best] = -z[best];
    tried[best] = 1;
    fit.flipped.push_back(best);
    fit.log_likelihood -= price;
  }
}

double Kriging::add_effects(KrigingFit& fit) const {
  const std::size_t p = fit.z.size();
  const double price = kPrice + std::log(static_cast<double>(p));
  constexpr double kNothingLeft = 1e-8;
  std::vector<double> rest = fit.z;      // given the effects so far
  std::vector<double> variance(p, 1.0);  // of it
  std::vector<std::vector<double>> columns;
  double gained = 0.0;
  while (columns.size() < kMostEffects) {
    Index best = 0;
    double most = price;
    for (Index j = 0; j < p; ++j) {
      const double gain = variance[j] > kNothingLeft ? 0.5 * rest[j] * rest[j] / variance[j] : 0.0;
      if (gain > most) {
        most = gain;
        best = j;
      }
    }
    if (!(most > price)) break;
    gained += most - price;
    fit.effects.push_back(best);
    const CrossColumn column = r_->column(best);
    std::vector<double> w(p);
    for (Index i = 0; i < p; ++i) w[i] = i == best ? 1.0 : (1.0 - shrinkage_) * column.values[i];
    for (const std::vector<double>& known : columns) {
      const double factor = known[best];
      for (std::size_t i = 0; i < p; ++i) w[i] -= factor * known[i];
    }
    const double scale = 1.0 / std::sqrt(variance[best]);
    const double effect = rest[best] * scale;
    for (std::size_t i = 0; i < p; ++i) {
      w[i] *= scale;
      rest[i] -= effect * w[i];
      variance[i] -= w[i] * w[i];
    }
    columns.push_back(std::move(w));
  }
  return gained;
}

KrigingFit Kriging::fit(std::vector<double> z) const {
  KrigingFit fit;
  fit.z = std::move(z);
  std::vector<double> weighed = weigh(fit.z);
  reverse_signs(fit, weighed);
  double square = 0.0;
  for (std::size_t i = 0; i < fit.z.size(); ++i) square += fit.z[i] * weighed[i];
  fit.log_likelihood += -0.5 * (log_det_ + square) + add_effects(fit);
  for (std::size_t i = 0; i < fit.z.size(); ++i) {
    fit.expected.push_back(fit.z[i] - weighed[i] / precision_[i]);
    fit.error.push_back(1.0 / std::sqrt(precision_[i]));
  }
  return fit;
}

}  // namespace poise
