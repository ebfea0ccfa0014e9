/// Rounds of annealing and crossover.
#include "inference/optimize/spin_annealing.hpp"

#include <algorithm>
#include <cmath>

namespace poise {

namespace {

constexpr unsigned kFirstAnneal = 300;
constexpr unsigned kAnneal = 200;
constexpr unsigned kVariablesPerRowCooling = 8;  // thresholds must follow the temperature

}  // namespace

/// The hot end makes the flip of a typical variable likely. The cold end makes that of all but the loosest unlikely.
TemperatureRange measure_temperatures(const SpinProblem& problem, Rng& rng) {
  constexpr int kClimbs = 4;
  std::vector<double> losses;
  std::vector<Spin> spins(problem.num_variables());
  double squares = 0.0;
  double climbed = 0.0;
  for (int climbs = 0; climbs < kClimbs; ++climbs) {
    for (Spin& spin : spins) spin = rng.uniform() < 0.5 ? -1 : 1;
    climb(problem, spins);
    climbed += static_cast<double>(problem.value(spins)) / kClimbs;
    for (Index i = 0; i < problem.num_variables(); ++i) {
      const auto loss = static_cast<double>(spins[i] * problem.local_field(i, spins));
      squares += loss * loss;
      if (loss > 0.0) losses.push_back(loss);
    }
  }
  if (losses.empty()) return {1.0, 1.0, climbed};
  const double typical = std::sqrt(squares / (kClimbs * static_cast<double>(problem.num_variables())));
  const auto loose = losses.begin() + static_cast<std::ptrdiff_t>(losses.size() / 20);
  std::nth_element(losses.begin(), loose, losses.end());
  const double hot = 0.4 * typical;
  return {std::clamp(0.25 * *loose, hot / 1000.0, hot / 4.0), hot, climbed};
}

bool Champion::take(std::int64_t other_value, std::span<const Spin> other, Crossover& crossover, Rng& rng) {
  if (spins.empty()) {
    spins.assign(other.begin(), other.end());
    value = other_value;
    return true;
  }
  const Crossover::Outcome outcome = crossover.improve(spins, other, rng);
  value += outcome.gain;
  return outcome.changed;
}

SpinAnnealing::SpinAnnealing(const SpinProblem& problem, TemperatureRange range, std::uint64_t seed,
                             std::uint64_t number)
    : problem_(&problem),
      range_(range),
      lanes_(make_spin_lanes(problem, range.hot, seed, 2 * number)),
      crossover_(problem),
      best_(lanes_->lanes()),
      reheat_(0.5 * range.hot),
      from_(lanes_->lanes()),
      rng_(make_rng(seed, Stream::annealing, 2 * number + 1)) {
  lanes_->set_random();
}

void SpinAnnealing::start_from(unsigned lane, std::span<const Spin> spins) {
  best_[lane].spins.assign(spins.begin(), spins.end());
  best_[lane].value = problem_->value(spins);
  lanes_->set(lane, spins);
}

void SpinAnnealing::round(SearchRecord& record) {
  anneal(record);
  cross(record);
  started_ = true;
}

void SpinAnnealing::anneal(SearchRecord& record) {
  const unsigned sweeps = started_ ? kAnneal : kFirstAnneal;
  for (unsigned lane = 0; lane < lanes_->lanes(); ++lane) {
    const bool begins = best_[lane].empty();
    from_[lane] = begins ? range_.hot : std::max(range_.cold, reheat_ * std::exp2(rng_.uniform() - 0.5));
  }
  for (unsigned sweep = 0; sweep < sweeps && !record.is_over(); ++sweep) {
    const double part = static_cast<double>(sweep) / (sweeps - 1);
    for (unsigned lane = 0; lane < lanes_->lanes(); ++lane) {
      lanes_->temperatures[lane] = from_[lane] * std::pow(range_.cold / from_[lane], part);
    }
    if (sweep == 0) lanes_->renew();
    lanes_->sweep(kVariablesPerRowCooling);
    ++record.sweeps;
  }
  std::fill(lanes_->temperatures.begin(), lanes_->temperatures.end(), 0.0);
  lanes_->renew();
  constexpr int kDescents = 4;  // few variables are left to flip after so many
  for (int sweep = 0; sweep < kDescents; ++sweep) lanes_->sweep(kVariablesPerRowCooling);
  record.sweeps += kDescents;
}

void SpinAnnealing::cross(SearchRecord& record) {
  std::vector<Spin> spins(problem_->num_variables());
  double gains = 0.0;
  double weighted = 0.0;
  for (unsigned lane = 0; lane < lanes_->lanes(); ++lane) {
    lanes_->get(lane, spins);
    Champion& best = best_[lane];
    const bool begins = best.empty();
    if (begins) climb(*problem_, spins);
    const std::int64_t before = best.value;
    if (best.take(begins ? problem_->value(spins) : 0, spins, crossover_, rng_)) record.add(best.value, best.spins);
    if (!begins && crossover_.components() > 0) {
      ++crossings_;
      components_ += crossover_.components();
    }
    const auto gain = begins ? 0.0 : static_cast<double>(best.value - before);
    gains += gain;
    weighted += gain * std::log(from_[lane]);
    lanes_->set(lane, best.spins);
  }
  if (gains > 0.0) {
    constexpr double kStep = 0.2;
    reheat_ *= std::exp(kStep * (weighted / gains - std::log(reheat_)));
    reheat_ = std::clamp(reheat_, range_.cold, range_.hot);
  }
  const auto leader = std::max_element(best_.begin(), best_.end(),
                                       [](const Champion& a, const Champion& b) { return a.value < b.value; });
  champion_.take(leader->value, leader->spins, crossover_, rng_);
  for (std::int64_t before = champion_.value - 1; before < champion_.value;) {
    before = champion_.value;
    for (const Champion& best : best_) champion_.take(best.value, best.spins, crossover_, rng_);
  }
  record.add_better(champion_.value, champion_.spins);
}

}  // namespace poise
