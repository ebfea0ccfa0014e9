/// The moves of a chain.
#include "inference/network_search/chain.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace poise::network_search {

namespace {

/// Largest tables of exact moves. A chain begins with small ones, which take little time, and goes to the next where
/// several moves in a row gained nothing.
constexpr std::array kWidths{64.0, 1024.0, 16384.0, 131072.0};
constexpr std::size_t kTries = 4;
/// Most tables of a part are smaller than the largest: by about that factor.
constexpr double kUsualFraction = 0.15;

/// The first annealing is long and starts hot; later ones start warm, so that much of the state survives them.
constexpr Schedule kFirst{.hot = 1.0, .cold = 0.02, .sweeps = 400};
constexpr std::array kReheats{0.1, 0.2, 0.3, 0.5};
constexpr std::array<std::size_t, 3> kSweeps{50, 150, 400};

std::size_t below(Rng& rng, std::size_t n) { return static_cast<std::size_t>(rng.uniform() * static_cast<double>(n)); }

}  // namespace

Scored cross(const LogNetwork& network, Part& part, const Scored& a, const Scored& b, const PartLimits& limits,
             Rng& rng) {
  const Scored& better = a.value >= b.value ? a : b;
  const Scored& other = a.value >= b.value ? b : a;
  std::vector<Choice> choices;
  for (Index i = 0; i < network.size(); ++i) {
    if (better.x[i] == other.x[i]) continue;
    choices.push_back({i, 2, better.x[i], static_cast<std::ptrdiff_t>(other.x[i]) - better.x[i]});
  }
  Scored child = better;
  if (choices.empty()) return child;
  part.maximise(choices, limits, child.x, rng);
  child.value = network.value(child.x);
  return child.value >= better.value ? child : better;
}

Chain::Chain(const LogNetwork& network, const Annealer& annealer, Rng rng, double most_entries)
    : network_(network),
      annealer_(annealer),
      rng_(rng),
      most_entries_(most_entries),
      part_(network),
      seen_(network.size(), 0) {
  for (Index i = 0; i < network.size(); ++i) many_levels_ = many_levels_ || network.levels(i) > 2;
}

void Chain::start_at(Scored state) {
  now_ = state;
  best_ = std::move(state);
  at_end_ = fresh_ = false;
  width_ = failures_ = 0;
}

void Chain::advance(double looks, const Halt& halt) {
  const double end = looks_ + looks;
  do {
    looks_ += at_end_ ? anneal(halt) : improve();
  } while (looks_ < end && !halt.now());
  if (now_.value > best_.value) best_ = now_;
}

/// From a random state the first time, from the best one later; what comes out is crossed with the best one.
double Chain::anneal(const Halt& halt) {
  at_end_ = false;
  width_ = failures_ = 0;
  Schedule schedule = kFirst;
  if (std::exchange(fresh_, false)) {
    now_.x.resize(network_.size());
    for (Index i = 0; i < network_.size(); ++i) now_.x[i] = static_cast<Value>(below(rng_, network_.levels(i)));
  } else {
    now_ = best_;
    schedule.hot = kReheats[below(rng_, kReheats.size())];
    schedule.sweeps = kSweeps[below(rng_, kSweeps.size())];
  }
  const double effort = annealer_.run(schedule, now_.x, rng_, [&] { return halt.now(); });
  now_.value = network_.value(now_.x);
  if (!best_.x.empty()) now_ = cross(network_, part_, best_, now_, {kCrossing, most_entries_}, rng_);
  if (best_.x.empty() || now_.value > best_.value) best_ = now_;
  return effort;
}

/// A connected region around a random variable, or everything where there are no more variables.
void Chain::choose_region(std::size_t count) {
  region_.clear();
  ++stamp_;
  while (region_.size() < std::min<std::size_t>(count, network_.size())) {
    Index seed = static_cast<Index>(below(rng_, network_.size()));
    while (seen_[seed] == stamp_) seed = seed + 1 == network_.size() ? 0 : seed + 1;
    seen_[seed] = stamp_;
    std::size_t next = region_.size();
    region_.push_back(seed);
    for (; next < region_.size() && region_.size() < count; ++next) {
      for (const Index u : network_.graph().of(region_[next])) {
        if (seen_[u] == stamp_ || region_.size() >= count) continue;
        seen_[u] = stamp_;
        region_.push_back(u);
      }
    }
  }
}

/// One exact move.
double Chain::improve() {
  const double largest = std::min(kWidths[width_], most_entries_);
  choose_region(static_cast<std::size_t>(std::max(16.0, most_entries_ / (kUsualFraction * largest))));
  // With many levels, a choice of two of them for each variable makes larger parts.
  const bool pairs = many_levels_ && rng_.uniform() < 0.5;
  choices_.clear();
  for (const Index i : region_) {
    const Index levels = network_.levels(i);
    if (!pairs || levels == 2) {
      choices_.push_back({i, levels});
      continue;
    }
    auto other = static_cast<Index>(below(rng_, levels - 1));
    other += other >= now_.x[i] ? 1 : 0;
    choices_.push_back({i, 2, now_.x[i], static_cast<std::ptrdiff_t>(other) - now_.x[i]});
  }
  std::vector<Value> before = now_.x;
  const double effort = part_.maximise(choices_, {largest, most_entries_}, now_.x, rng_);
  const double value = network_.value(now_.x);
  if (value > now_.value + network_.rounding()) {
    now_.value = value;
    failures_ = 0;
    return effort;
  }
  if (value < now_.value - network_.rounding()) {  // rounding beside prices of zeros
    now_.x = std::move(before);
  } else {
    now_.value = value;
  }
  if (++failures_ < kTries) return effort;
  failures_ = 0;
  if (++width_ < kWidths.size()) return effort;
  at_end_ = true;
  if (now_.value > best_.value) best_ = now_;
  ends_.push_back(now_);
  return effort;
}

}  // namespace poise::network_search
