/// Short series, their R-hat and effective sample sizes, and their distance from known marginals.
#include "run/watch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <poise/diagnose.hpp>
#include <poise/extend/engines/division.hpp>

namespace poise {

namespace {

/// Chains and variables that are looked at: more would not show more.
constexpr std::size_t kMostChains = 16;
constexpr std::size_t kMostVariables = 4096;
/// Chains have settled where R-hat is lower and each has as many effective samples.
constexpr double kSettledRHat = 1.1;
constexpr double kSettledSamples = 5.0;
/// A probability may be off by this without being wrong.
constexpr double kNegligible = 0.06;

/// The smallest ESS and the largest R-hat of several quantities.
struct Slowest {
  double ess_per_point = 1.0;
  double r_hat = 1.0;

  void add(double ess, double points, double disagreement) {
    if (std::isnan(ess)) return;  // it never changed
    ess_per_point = std::min(ess_per_point, ess / points);
    if (!std::isnan(disagreement)) r_hat = std::max(r_hat, disagreement);
  }
};

}  // namespace

Watch::Watch(const Model& model, std::size_t chains, std::uint64_t spacing)
    : variables_(model.layout.variables),
      series_(model.statistics.size() + 1, std::vector<std::vector<double>>(std::min(chains, kMostChains))),
      levels_(std::min(chains, kMostChains)),
      spacing_(spacing) {
  std::vector<Index> free;
  for (Index i = 0; i < variables_; ++i) {
    if (model.layout.levels(i) > 1) free.push_back(i);
  }
  const std::size_t count = std::min(kMostVariables, free.size());
  for (std::size_t k = 0; k < count; ++k) looked_at_.push_back(free[k * free.size() / count]);
}

void Watch::record(const Engine& engine) {
  const std::size_t chains = levels_.size();
  const std::size_t own = series_.size() - 1;
  std::vector<double> log_prob(chains);
  std::vector<double> statistics(chains * own);
  std::vector<Value> levels(chains * variables_);
  observe_all(engine, {0, chains}, {.log_prob = log_prob, .statistics = statistics, .levels = levels});
  for (std::size_t c = 0; c < chains; ++c) {
    series_[0][c].push_back(log_prob[c]);
    for (std::size_t k = 0; k < own; ++k) series_[k + 1][c].push_back(statistics[c * own + k]);
    for (const Index i : looked_at_) levels_[c].push_back(static_cast<std::int8_t>(levels[c * variables_ + i]));
  }
  ++points_;
}

void Watch::halve() {
  // Points 1, 3, 5, ... are those at multiples of the new distance.
  const auto keep_odd = [&](auto& of_chain, std::size_t width) {
    for (std::size_t k = 0; k < points_ / 2; ++k) {
      std::copy_n(of_chain.begin() + static_cast<std::ptrdiff_t>((2 * k + 1) * width), width,
                  of_chain.begin() + static_cast<std::ptrdiff_t>(k * width));
    }
    of_chain.resize(points_ / 2 * width);
  };
  for (auto& quantity : series_) {
    for (auto& chain : quantity) keep_odd(chain, 1);
  }
  for (auto& chain : levels_) keep_odd(chain, looked_at_.size());
  points_ /= 2;
  spacing_ *= 2;
}

std::vector<std::int8_t> Watch::later_levels() const {
  std::vector<std::int8_t> out;
  for (const auto& chain : levels_) {
    out.insert(out.end(), chain.end() - static_cast<std::ptrdiff_t>(later() * looked_at_.size()), chain.end());
  }
  return out;
}

Watch::Look Watch::look() const {
  const std::size_t chains = levels_.size();
  const auto all = static_cast<double>(chains * later());
  Slowest slowest;
  for (const auto& quantity : series_) {
    std::vector<double> values;
    for (const auto& chain : quantity) {
      values.insert(values.end(), chain.end() - static_cast<std::ptrdiff_t>(later()), chain.end());
    }
    const ChainsView view{values.data(), chains, later()};
    slowest.add(ess_mean(view), all, split_r_hat(view));
  }
  const std::vector<std::int8_t> x = later_levels();
  const VariablesSummary summary = summarize_variables({x.data(), chains, later(), looked_at_.size()}, {.worst = 0});
  double variance = 0.0;
  double squared_error = 0.0;
  double disagreement = 0.0;
  for (const VariableRow& row : summary.rows) {
    if (row.status == SeriesStatus::constant || !(row.ess > 0.0)) continue;
    const double own = row.mcse * row.mcse * row.ess;
    variance += own;
    squared_error += row.mcse * row.mcse;
    disagreement += own * (std::isnan(row.r_hat) ? 1.0 : row.r_hat * row.r_hat);
  }
  if (variance > 0.0) slowest.add(variance / squared_error, all, std::sqrt(disagreement / variance));
  if (summary.frozen > 0) slowest.r_hat = std::numeric_limits<double>::infinity();
  Look look{slowest.r_hat, slowest.ess_per_point / static_cast<double>(spacing_), slowest.ess_per_point * all, false};
  look.settled =
      slowest.r_hat < kSettledRHat && slowest.ess_per_point * static_cast<double>(later()) >= kSettledSamples;
  return look;
}

double Watch::r_hat_along_differences() const {
  const std::size_t chains = levels_.size();
  const std::size_t width = looked_at_.size();
  const std::size_t earlier = points_ - later();
  if (earlier == 0 || width == 0) return 1.0;
  std::vector<double> means(chains * width, 0.0);
  std::vector<double> mean(width, 0.0);
  for (std::size_t c = 0; c < chains; ++c) {
    for (std::size_t k = 0; k < earlier * width; ++k) {
      const double share = levels_[c][k] / static_cast<double>(earlier);
      means[c * width + k % width] += share;
      mean[k % width] += share / static_cast<double>(chains);
    }
  }
  const std::vector<std::int8_t> x = later_levels();
  std::vector<double> along(chains * later());
  double largest = 1.0;
  for (std::size_t c = 0; c < chains; ++c) {
    for (std::size_t row = 0; row < along.size(); ++row) {
      double sum = 0.0;
      for (std::size_t i = 0; i < width; ++i) sum += (means[c * width + i] - mean[i]) * x[row * width + i];
      along[row] = sum;
    }
    const double r_hat = split_r_hat({along.data(), chains, later()});
    if (!std::isnan(r_hat)) largest = std::max(largest, r_hat);
  }
  return largest;
}

bool Watch::contradicts(const std::vector<ExactPart>& known) const {
  const std::vector<std::int8_t> x = later_levels();
  const std::size_t width = looked_at_.size();
  const auto points = static_cast<double>(levels_.size() * later());
  // Chains that mix have at least as many effective points as their slowest quantity.
  const double effective = std::max(2.0, look().ess_per_step * static_cast<double>(spacing_) * points);
  for (const ExactPart& part : known) {
    double squares = 0.0;
    double count = 0.0;
    double largest = 0.0;
    for (std::size_t k = 0; k < part.variables.size(); ++k) {
      const auto found = std::lower_bound(looked_at_.begin(), looked_at_.end(), part.variables[k]);
      if (found == looked_at_.end() || *found != part.variables[k]) continue;
      const std::span<const double> exact = part.marginals.of(static_cast<Index>(k));
      std::vector<double> seen(exact.size(), 0.0);
      for (std::size_t r = static_cast<std::size_t>(found - looked_at_.begin()); r < x.size(); r += width) {
        seen[static_cast<std::uint8_t>(x[r])] += 1.0 / points;
      }
      for (std::size_t level = 1; level < exact.size(); ++level) {
        const double apart = seen[level] - exact[level];
        // A level that is all but impossible has a variance of at least one draw's.
        const double deviation = std::max(exact[level] * (1.0 - exact[level]), 1.0 / points) / effective;
        squares += apart * apart / deviation;
        largest = std::max(largest, std::abs(apart));
        count += 1.0;
      }
    }
    // Mean squares of z: two errors in all variables, or nearly six in a single one.
    if (largest > kNegligible && squares > 4.0 * count + 30.0) return true;
  }
  return false;
}

}  // namespace poise
