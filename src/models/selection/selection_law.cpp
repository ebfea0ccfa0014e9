/// The prior in numbers: log odds of inclusion, slab variances, and what is wrong with them.
#include "models/selection/selection_law.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>

namespace poise {

namespace {

/// Part of a column's squared length below which nothing is left of it: rounding makes as much.
constexpr double kNothingLeft = 1e-8;
/// The slab variance that fine-mapping without n starts from: that of z scores.
constexpr double kVarianceOfScores = 50.0;
constexpr double kUsualVariance = 0.2;

double log_beta(double a, double b) { return std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b); }

std::vector<double> inclusions_of(const SelectionPrior& prior, const std::vector<std::string>& names,
                                  std::vector<std::string>& problems) {
  const std::size_t p = names.size();
  const double usual = 1.0 / static_cast<double>(std::max<std::size_t>(2, p));
  std::vector<double> out(p, prior.inclusion.value_or(usual));
  if (prior.inclusion && !(*prior.inclusion > 0.0 && *prior.inclusion < 1.0)) {
    problems.push_back(fmt::format("inclusion: found {}, expected a probability between 0 and 1", *prior.inclusion));
  }
  if (prior.inclusion && !prior.inclusions.empty()) {
    problems.emplace_back("inclusion: found one probability for all variables and one for each, expected either");
  }
  if (!prior.inclusions.empty()) {
    if (prior.inclusions.size() != p) {
      problems.push_back(
          fmt::format("inclusion: found {} probabilities, expected {}, one a variable", prior.inclusions.size(), p));
      return out;
    }
    out = prior.inclusions;
    for (std::size_t j = 0; j < p; ++j) {
      if (out[j] >= 0.0 && out[j] <= 1.0) continue;
      problems.push_back(fmt::format("inclusion: found {} for {}, expected a probability", out[j], names[j]));
      break;
    }
  }
  for (const std::string& name : prior.always) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      const std::string nearest = nearest_name(name, names);
      problems.push_back(fmt::format("always: found {}, which is no variable{}", quote(name),
                                     nearest.empty() ? "" : fmt::format(" (did you mean {}?)", quote(nearest))));
    } else {
      out[static_cast<std::size_t>(found - names.begin())] = 1.0;
    }
  }
  return out;
}

void check_beta(const SelectionPrior& prior, std::vector<std::string>& problems) {
  if (prior.beta_a.has_value() != prior.beta_b.has_value()) {
    problems.emplace_back("beta_a and beta_b: found one of them, expected both");
  } else if (prior.beta_a && (prior.inclusion || !prior.inclusions.empty())) {
    problems.emplace_back("beta_a and beta_b: found them with inclusion, expected one or the other");
  } else if (prior.beta_a && !(*prior.beta_a > 0.0 && *prior.beta_b > 0.0)) {
    problems.push_back(
        fmt::format("beta_a and beta_b: found {} and {}, expected positive numbers", *prior.beta_a, *prior.beta_b));
  }
}

}  // namespace

SelectionLaw::SelectionLaw(SelectionData data, const SelectionPrior& prior, const std::vector<std::string>& names,
                           const std::vector<Index>& unusable)
    : data_(std::move(data)), slab_variances_(prior.slab_variances), is_g_prior_(prior.slab == Slab::g) {
  std::vector<std::string> problems;
  inclusion_ = inclusions_of(prior, names, problems);
  for (const Index j : unusable) inclusion_[j] = 0.0;
  const std::vector<double>& inclusion = inclusion_;
  check_beta(prior, problems);
  if (slab_variances_.empty()) {
    slab_variances_.push_back(is_g_prior_               ? std::max(1.0, data_.observations)
                              : data_.observations == 0 ? kVarianceOfScores
                                                        : kUsualVariance);
  }
  for (const double variance : slab_variances_) {
    if (variance > 0.0 && std::isfinite(variance)) continue;
    problems.push_back(fmt::format("slab_variance: found {}, expected a positive number", variance));
  }
  if (data_.residual_variance && !(*data_.residual_variance > 0.0 && std::isfinite(*data_.residual_variance))) {
    problems.push_back(
        fmt::format("residual_variance: found {}, expected a positive number", *data_.residual_variance));
  }
  if (!problems.empty()) throw InputError(fmt::format("{}", fmt::join(problems, "; ")));

  for (const double variance : slab_variances_) {
    log_slabs_.push_back(is_g_prior_ ? -0.5 * std::log1p(variance) : -0.5 * std::log(variance));
    explained_.push_back(is_g_prior_ ? variance / (1.0 + variance) : 1.0);
  }
  const Index p = size();
  fixed_.assign(p, 0);
  log_prior_.assign(lines_of(p), {{kMinusInfinity, kMinusInfinity, kMinusInfinity, kMinusInfinity, kMinusInfinity,
                                   kMinusInfinity, kMinusInfinity, kMinusInfinity}});
  free_ones_.resize(lines_of(p));
  prior_odds_.resize(lines_of(p));
  least_v_.resize(lines_of(p));
  for (Index j = 0; j < p; ++j) {
    numbers_of(least_v_)[j] = kNothingLeft * data_.products->diagonal()[j];
    if (inclusion[j] == 1.0) {
      fixed_[j] = kForced;
      forced_.push_back(j);
      numbers_of(log_prior_)[j] = 0.0;
    } else if (inclusion[j] == 0.0) {
      fixed_[j] = kForbidden;
    } else {
      ++free_;
      numbers_of(free_ones_)[j] = 1.0;
      numbers_of(log_prior_)[j] = prior.beta_a ? 0.0 : std::log(inclusion[j]) - std::log1p(-inclusion[j]);
      numbers_of(prior_odds_)[j] = prior.beta_a ? 1.0 : inclusion[j] / (1.0 - inclusion[j]);
      if (!prior.beta_a) log_empty_ += std::log1p(-inclusion[j]);
    }
  }
  if (!prior.beta_a) return;
  const double a = *prior.beta_a;
  const double b = *prior.beta_b;
  const auto free = static_cast<double>(free_);
  for (double& one : inclusion_) one = one > 0.0 && one < 1.0 ? a / (a + b) : one;
  for (Index m = 0; m <= free_; ++m) {
    size_prior_.push_back(log_beta(a + m, b + free - m) - log_beta(a, b));
    if (m < free_) size_odds_.push_back(std::log(a + m) - std::log(b + free - m - 1.0));
  }
}

double SelectionLaw::log_prior(const std::vector<Value>& x, const std::vector<Index>& active) const {
  for (const Index j : forced_) {
    if (x[j] == 0) return kMinusInfinity;
  }
  double sum = log_empty_;
  for (const Index j : active) sum += log_prior()[j];
  return size_prior_.empty() || sum == kMinusInfinity ? sum : sum + size_prior_[active.size() - forced_.size()];
}

}  // namespace poise
