/// Sweeps, exchanges and the adaptation of ladders.
#include "inference/optimize/replica_exchange.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace poise {

namespace {

constexpr unsigned kSweepsOfRound = 200;   // of a round
constexpr unsigned kVariablesPerRow = 32;  // temperatures rest, so thresholds may be used for longer
constexpr unsigned kAdaptations = 12;
constexpr unsigned kFewestRungs = 8;
constexpr double kEnough = 0.45;    // mean rate of exchange above which a ladder is divided
constexpr unsigned kHarvested = 8;  // lanes a round
constexpr double kHottest = 2.0;    // beside the temperature at which states are as good as those that climbed

}  // namespace

ReplicaExchange::ReplicaExchange(const SpinProblem& problem, TemperatureRange range, std::uint64_t seed,
                                 std::uint64_t number)
    : problem_(&problem),
      lanes_(make_spin_lanes(problem, range.hot, seed, 2 * number)),
      crossover_(problem),
      climbed_(range.climbed),
      rungs_(lanes_->lanes()),
      best_(std::numeric_limits<std::int64_t>::min()),
      rng_(make_rng(seed, Stream::annealing, 2 * number + 1)) {
  for (unsigned rung = 0; rung < rungs_; ++rung) {
    ladder_.push_back(range.cold * std::pow(range.hot / range.cold, static_cast<double>(rung) / (rungs_ - 1)));
  }
  lanes_->set_random();
  lanes_->recompute_values();
  apply_ladder();
}

void ReplicaExchange::start_from(std::span<const Spin> spins) {
  lanes_->set(0, spins);
  lanes_->recompute_values();
}

void ReplicaExchange::apply_ladder() {
  for (unsigned lane = 0; lane < lanes_->lanes(); ++lane) lanes_->temperatures[lane] = ladder_[lane % rungs_];
  lanes_->renew();
  rates_.assign(rungs_, 0.0);
  attempts_.assign(rungs_, 0.0);
}

void ReplicaExchange::round(SearchRecord& record) {
  std::vector<Spin> spins(problem_->num_variables());
  for (unsigned sweep = 0; sweep < kSweepsOfRound && !record.is_over(); ++sweep) {
    lanes_->sweep_with_values(kVariablesPerRow);
    ++record.sweeps;
    const std::vector<std::int64_t>& values = lanes_->values();
    const auto leader = std::max_element(values.begin(), values.end());
    if (*leader > best_) {
      best_ = *leader;
      lanes_->get(static_cast<unsigned>(leader - values.begin()), spins);
      climb(*problem_, spins);
      record.add(problem_->value(spins), spins);
    }
    exchange();
  }
  if (adaptations_ < kAdaptations) adapt();
  harvest(record);
}

void ReplicaExchange::exchange() {
  std::vector<bool> chosen(lanes_->lanes(), false);
  const std::vector<std::int64_t>& values = lanes_->values();
  for (unsigned lane = parity_; lane + 1 < lanes_->lanes(); lane += 2) {
    const unsigned rung = lane % rungs_;
    if (rung + 1 == rungs_) continue;
    // The law at temperature t is exp(value / (2 t)).
    const double log_ratio =
        0.5 * static_cast<double>(values[lane + 1] - values[lane]) * (1.0 / ladder_[rung] - 1.0 / ladder_[rung + 1]);
    const double probability = log_ratio >= 0.0 ? 1.0 : std::exp(log_ratio);
    rates_[rung] += probability;
    attempts_[rung] += 1.0;
    chosen[lane] = rng_.uniform() < probability;
  }
  parity_ = 1 - parity_;
  lanes_->exchange_neighbours(chosen);
}

/// The first rung from which on temperatures are of no use.
unsigned ReplicaExchange::hottest_useful() const {
  std::vector<double> mean(rungs_, 0.0);
  const double ladders = static_cast<double>(lanes_->lanes()) / rungs_;
  for (unsigned lane = 0; lane < lanes_->lanes(); ++lane) {
    mean[lane % rungs_] += static_cast<double>(lanes_->values()[lane]) / ladders;
  }
  unsigned rung = rungs_ - 1;
  while (rung > 0 && mean[rung] < climbed_) --rung;
  if (rung == 0) return rungs_ - 1;  // not settled yet
  const double most = kHottest * ladder_[rung];
  while (rung + 1 < rungs_ && ladder_[rung] < most) ++rung;
  return rung;
}

/// Moves the rungs so that each gap has an equal share of what keeps neighbours from exchanging.
void ReplicaExchange::adapt() {
  std::vector<double> barrier(rungs_, 0.0);  // below each rung
  double mean = 0.0;
  for (unsigned rung = 0; rung + 1 < rungs_; ++rung) {
    const double rate = attempts_[rung] > 0.0 ? rates_[rung] / attempts_[rung] : 1.0;
    mean += rate / (rungs_ - 1);
    barrier[rung + 1] = barrier[rung] + std::max(1.0 - rate, 0.05);
  }
  ++adaptations_;
  const unsigned hottest = hottest_useful();
  const bool divide = mean > kEnough && rungs_ / 2 >= kFewestRungs;
  const unsigned wanted = divide ? rungs_ / 2 : rungs_;
  std::vector<double> ladder(wanted);
  for (unsigned rung = 0; rung < wanted; ++rung) {
    const double at = barrier[hottest] * rung / (wanted - 1);
    unsigned above = 1;
    while (above < hottest && barrier[above] < at) ++above;
    const double part = (at - barrier[above - 1]) / (barrier[above] - barrier[above - 1]);
    ladder[rung] = ladder_[above - 1] * std::pow(ladder_[above] / ladder_[above - 1], std::min(part, 1.0));
  }
  ladder_ = std::move(ladder);
  rungs_ = wanted;
  apply_ladder();
}

/// The champion takes from a few lanes of the colder half what is better in them.
void ReplicaExchange::harvest(SearchRecord& record) {
  std::vector<Spin> spins(problem_->num_variables());
  for (unsigned taken = 0; taken < kHarvested; ++taken) {
    while (next_ % rungs_ >= rungs_ / 2) next_ = (next_ + 1) % lanes_->lanes();
    lanes_->get(next_, spins);
    next_ = (next_ + 1) % lanes_->lanes();
    record.add(problem_->value(spins), spins);  // a list of best states has some that are no local optima
    climb(*problem_, spins);
    const std::int64_t value = problem_->value(spins);
    record.add_better(value, spins);
    champion_.take(value, spins, crossover_, rng_);
  }
  record.add_better(champion_.value, champion_.spins);
}

}  // namespace poise
