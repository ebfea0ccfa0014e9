/// Effective sample sizes of short series.
#include "run/pilot.hpp"

#include <algorithm>
#include <cmath>

#include <poise/diagnose.hpp>
#include <poise/extend/engines/engine.hpp>

namespace poise {

namespace {

constexpr std::size_t kMostVariables = 256;
/// Beyond this chains disagree entirely, and by how much says nothing.
constexpr double kLargestRHat = 5.0;
/// Chains have mixed where R-hat is lower and each has as many effective samples.
constexpr double kMixedRHat = 1.2;
constexpr double kMixedSamples = 5.0;
/// Variance of a variable that one candidate leaves alone, from which on the others prove it wrong: a frequency of 5 %.
constexpr double kVaries = 0.05;

/// From effective samples per recorded point to those per draw, as if autocorrelations fell off exponentially.
double per_draw(double per_point, double points_per_draw) {
  if (!(per_point > 0.0)) return 0.0;
  if (per_point >= 1.0) return 1.0;
  const double correlation = (1.0 - per_point) / (1.0 + per_point);
  const double between_draws = std::pow(correlation, points_per_draw);
  return (1.0 - between_draws) / (1.0 + between_draws);
}

std::vector<double> later_half(const std::vector<std::vector<double>>& chains) {
  const std::size_t half = chains[0].size() - chains[0].size() / 2;
  std::vector<double> out;
  for (const auto& chain : chains)
    out.insert(out.end(), chain.begin() + static_cast<std::ptrdiff_t>(half), chain.end());
  return out;
}

}  // namespace

PilotRecord::PilotRecord(const Model& model, std::size_t chains)
    : names_{"log_prob"}, variables_(model.layout.variables) {
  names_.insert(names_.end(), model.statistics.begin(), model.statistics.end());
  series_.assign(names_.size(), std::vector<std::vector<double>>(chains));
  levels_.resize(chains);
  std::vector<Index> free;
  for (Index i = 0; i < variables_; ++i) {
    if (model.layout.levels(i) > 1) free.push_back(i);
  }
  const std::size_t count = std::min(kMostVariables, free.size());
  for (std::size_t k = 0; k < count; ++k) looked_at_.push_back(free[k * free.size() / count]);
}

void PilotRecord::record(const Engine& engine) {
  const ChainGroup here = own_chains(engine);
  const std::size_t own = names_.size() - 1;
  std::vector<double> log_prob(here.count);
  std::vector<double> statistics(here.count * own);
  std::vector<Value> levels(here.count * variables_);
  if (here.count > 0) engine.observe(here, {.log_prob = log_prob, .statistics = statistics, .levels = levels});
  for (std::size_t r = 0; r < here.count; ++r) {
    const std::size_t c = here.first + r;
    series_[0][c].push_back(log_prob[r]);
    for (std::size_t k = 0; k < own; ++k) series_[k + 1][c].push_back(statistics[r * own + k]);
    for (const Index i : looked_at_) levels_[c].push_back(static_cast<std::int8_t>(levels[r * variables_ + i]));
  }
  ++points_;
}

void PilotRecord::share(const Division& division) {
  const std::size_t fresh = points_ - shared_;
  const std::size_t chains = levels_.size();
  const ChainGroup own = division.own();
  // Whatever is kept of a chain, point by point: the last points are those that the others do not have.
  const auto share = [&](auto& of_chains, std::size_t width) {
    using Number = typename std::decay_t<decltype(of_chains[0])>::value_type;
    const std::size_t each = fresh * width;
    std::vector<Number> all(chains * each);
    for (std::size_t c = own.first; c < own.first + own.count; ++c) {
      std::copy(of_chains[c].end() - static_cast<std::ptrdiff_t>(each), of_chains[c].end(),
                all.begin() + static_cast<std::ptrdiff_t>(c * each));
    }
    division.gather(std::span<Number>(all), {0, chains}, each);
    for (std::size_t c = 0; c < chains; ++c) {
      if (c >= own.first && c < own.first + own.count) continue;
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(c * each);
      of_chains[c].insert(of_chains[c].end(), first, first + static_cast<std::ptrdiff_t>(each));
    }
  };
  for (auto& monitor : series_) share(monitor, 1);
  share(levels_, looked_at_.size());
  shared_ = points_;
}

PilotRecord PilotRecord::first(std::size_t points) const {
  PilotRecord out = *this;
  for (auto& monitor : out.series_) {
    for (auto& chain : monitor) chain.resize(points);
  }
  for (auto& chain : out.levels_) chain.resize(points * looked_at_.size());
  out.points_ = out.shared_ = points;
  return out;
}

PilotSummary PilotRecord::summarize() const {
  PilotSummary out;
  const std::size_t chains = levels_.size();
  const std::size_t kept = points() / 2;
  out.points = static_cast<double>(chains * kept);
  out.chains = chains;
  for (std::size_t k = 0; k < names_.size(); ++k) {
    const std::vector<double> values = later_half(series_[k]);
    const ChainsView view{values.data(), chains, kept};
    const double ess = ess_mean(view);
    const double disagreement = split_r_hat(view);
    PilotQuantity quantity{names_[k], ess / out.points, std::min(disagreement, kLargestRHat), std::isnan(ess)};
    if (std::isnan(disagreement)) quantity.r_hat = 1.0;
    out.monitors.push_back(std::move(quantity));
  }
  const std::size_t width = looked_at_.size();
  std::vector<std::int8_t> x;
  x.reserve(chains * kept * width);
  for (const auto& chain : levels_) {
    x.insert(x.end(), chain.end() - static_cast<std::ptrdiff_t>(kept * width), chain.end());
  }
  const VariablesSummary summary = summarize_variables({x.data(), chains, kept, width}, {.worst = 0});
  out.variance.assign(width, 0.0);
  out.squared_error.assign(width, 0.0);
  double all = 0.0;
  double disagreement = 0.0;
  for (const VariableRow& row : summary.rows) {
    if (row.status == SeriesStatus::constant || !(row.ess > 0.0)) continue;
    const double variance = row.mcse * row.mcse * row.ess;
    out.variance[row.variable] += variance;
    out.squared_error[row.variable] += row.mcse * row.mcse;
    const double r_hat = std::isnan(row.r_hat) ? 1.0 : std::min(row.r_hat, kLargestRHat);
    disagreement += variance * r_hat * r_hat;
    all += variance;
  }
  if (all > 0.0) out.variables_r_hat = std::sqrt(disagreement / all);
  // One variable that no chain ever changed, though they have it at different levels, is enough.
  if (summary.frozen > 0) out.variables_r_hat = kLargestRHat;
  return out;
}

PilotScore score_pilot(const PilotSummary& one, const std::vector<const PilotSummary*>& all, double points_per_draw) {
  PilotScore score{1.0, one.monitors[0].name, one.variables_r_hat, false};
  double slowest = 1.0;
  const auto consider = [&](double ess_per_point, const std::string& name) {
    if (!(ess_per_point < slowest)) return;
    slowest = ess_per_point;
    score.slowest = name;
  };
  for (std::size_t k = 0; k < one.monitors.size(); ++k) {
    const PilotQuantity& quantity = one.monitors[k];
    const bool varies =
        std::any_of(all.begin(), all.end(), [&](const PilotSummary* other) { return !other->monitors[k].constant; });
    if (!quantity.constant) {
      consider(quantity.ess_per_point, quantity.name);
      score.r_hat = std::max(score.r_hat, quantity.r_hat);
    } else if (varies) {
      consider(0.0, quantity.name);
    }
  }
  double variance = 0.0;
  double squared_error = 0.0;
  for (std::size_t i = 0; i < one.variance.size(); ++i) {
    double largest = 0.0;
    for (const PilotSummary* other : all) largest = std::max(largest, other->variance[i]);
    const bool left_alone = one.variance[i] == 0.0 && largest > kVaries;
    variance += left_alone ? largest : one.variance[i];
    squared_error += left_alone ? largest : one.squared_error[i];
  }
  if (variance > 0.0) {
    consider(variance / squared_error / one.points, "variables");
  } else if (std::all_of(one.monitors.begin(), one.monitors.end(), [](const auto& each) { return each.constant; })) {
    consider(0.0, "variables");  // nothing ever moved
  }
  score.ess_per_draw = per_draw(slowest, points_per_draw);
  score.mixed = score.r_hat < kMixedRHat && slowest * one.points >= kMixedSamples * static_cast<double>(one.chains);
  return score;
}

}  // namespace poise
