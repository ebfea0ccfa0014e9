/// The sweeps of annealing.
#include "inference/network_search/annealing.hpp"

#include <algorithm>
#include <cmath>

namespace poise::network_search {

namespace {

/// All chance in finding the scale comes from it: the same for every run on a network.
constexpr std::uint64_t kScaleSeed = 19830513;
/// A zero costs as much as the widest finite range of a factor less some typical changes, and one change at least: it
/// can be passed at all but the cold end. Exact moves, which know its true price, take out what is left. With a higher
/// price random networks with zeros get stuck, with a lower one the cold end has too many of them.
constexpr double kZeroScales = 2.0;

}  // namespace

Annealer::Annealer(const LogNetwork& network) : network_(network), logs_(network.logs().begin(), network.logs().end()) {
  Rng rng(kScaleSeed, 0);
  scale_ = scale_of(rng);
  zero_ = -std::max(scale_, network.widest() - kZeroScales * scale_);
  for (double& log : logs_) {
    if (log == network.zero()) log = zero_;
  }
}

/// The mean absolute difference that a random change of a variable makes at random states, zeros not counted.
double Annealer::scale_of(Rng& rng) const {
  constexpr std::size_t looks = 1000;
  const Index n = network_.size();
  std::vector<Value> x(n);
  double sum = 0.0;
  std::size_t counted = 0;
  for (Index i = 0; i < n; ++i) x[i] = static_cast<Value>(rng.uniform() * network_.levels(i));
  for (std::size_t k = 0; k < looks; ++k) {
    const auto i = static_cast<Index>(rng.uniform() * n);
    const Value other = static_cast<Value>(rng.uniform() * network_.levels(i));
    double change = 0.0;
    for (const LogNetwork::Link& link : network_.links(i)) {
      const std::size_t now = network_.place(link.factor, x);
      const double before = network_.logs()[now];
      const double after = network_.logs()[now + link.stride * other - link.stride * x[i]];
      if (before != network_.zero() && after != network_.zero()) change += after - before;
    }
    x[i] = other;
    sum += std::abs(change);
    counted += change != 0.0 ? 1 : 0;
  }
  return counted == 0 ? 1.0 : sum / static_cast<double>(counted);
}

double Annealer::run(const Schedule& schedule, std::span<Value> x, Rng& rng, const std::function<bool()>& halt) const {
  const Index n = network_.size();
  std::vector<std::size_t> place(network_.num_factors());
  for (std::size_t f = 0; f < place.size(); ++f) place[f] = network_.place(f, x);
  std::vector<double> local(256);
  const auto look_at = [&](Index i) {
    const Index levels = network_.levels(i);
    std::fill_n(local.begin(), levels, 0.0);
    for (const LogNetwork::Link& link : network_.links(i)) {
      const double* const row = logs_.data() + (place[link.factor] - link.stride * x[i]);
      for (Index k = 0; k < levels; ++k) local[k] += row[link.stride * k];
    }
    return *std::max_element(local.begin(), local.begin() + levels);
  };
  const auto put = [&](Index i, Index level) {
    if (level == x[i]) return;
    for (const LogNetwork::Link& link : network_.links(i)) {
      place[link.factor] += link.stride * level - link.stride * x[i];
    }
    x[i] = static_cast<Value>(level);
  };
  double effort = 0.0;
  const double steps = static_cast<double>(std::max<std::size_t>(1, schedule.sweeps - 1));
  for (std::size_t sweep = 0; sweep < schedule.sweeps && !halt(); ++sweep) {
    const double fraction = static_cast<double>(sweep) / steps;
    const double temperature = scale_ * schedule.hot * std::pow(schedule.cold / schedule.hot, fraction);
    for (Index i = 0; i < n; ++i) {
      const double best = look_at(i);
      const Index levels = network_.levels(i);
      double sum = 0.0;
      for (Index k = 0; k < levels; ++k) sum += local[k] = std::exp((local[k] - best) / temperature);
      double left = rng.uniform() * sum;
      Index level = 0;
      while (level + 1 < levels && left >= local[level]) left -= local[level++];
      put(i, level);
    }
    effort += network_.sweep_looks();
  }
  for (bool better = true; better && !halt();) {
    better = false;
    for (Index i = 0; i < n; ++i) {
      const double best = look_at(i);
      if (local[x[i]] >= best - network_.rounding()) continue;
      put(i, static_cast<Index>(std::max_element(local.begin(), local.begin() + network_.levels(i)) - local.begin()));
      better = true;
    }
    effort += network_.sweep_looks();
  }
  return effort;
}

}  // namespace poise::network_search
