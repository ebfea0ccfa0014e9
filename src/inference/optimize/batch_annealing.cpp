/// Lockstep Metropolis chains with a geometric schedule.
#include "inference/optimize/batch_annealing.hpp"

#include <algorithm>
#include <cmath>

namespace poise {

namespace {

constexpr std::size_t kLockstep = 32;
constexpr std::uint64_t kMostClimbs = 20;  // sweeps of the first round
constexpr std::uint64_t kFirstRound = 40;  // sweeps of the second

}  // namespace

BatchAnnealing::BatchAnnealing(std::span<const Index> cardinalities, const OptimizeStart& start,
                               EvaluateStates evaluate, std::uint64_t seed)
    : cardinalities_(cardinalities.begin(), cardinalities.end()),
      evaluate_(std::move(evaluate)),
      rng_(make_rng(seed, Stream::annealing)) {
  const std::size_t n = cardinalities_.size();
  const auto fixed = [&](Index i) { return start.fixed.empty() ? std::nullopt : start.fixed[i]; };
  for (Index i = 0; i < n; ++i) {
    if (!fixed(i) && cardinalities_[i] > 1) free_.push_back(i);
  }
  for (std::size_t chain = 0; chain < kLockstep; ++chain) {
    for (Index i = 0; i < n; ++i) {
      const auto drawn = static_cast<Value>(rng_.uniform() * cardinalities_[i]);
      const bool given = chain < start.states.size();
      states_.push_back(fixed(i).value_or(given ? start.states[chain][i] : drawn));
    }
  }
}

void BatchAnnealing::run(std::uint64_t longest, std::uint64_t& sweeps, const Hooks& hooks) {
  const std::size_t n = cardinalities_.size();
  log_prob_ = evaluate_(states_);
  for (std::size_t chain = 0; chain < kLockstep; ++chain) {
    hooks.visited(log_prob_[chain], std::span<const Value>(states_).subspan(chain * n, n));
  }
  const auto advance = [&](double temperature) {
    if (!sweep(temperature, hooks)) return false;
    ++sweeps;
    return true;
  };
  // Climbs end where a sweep changes nothing.
  const auto climb = [&] {
    std::vector<double> before;
    for (std::uint64_t k = 0; k < kMostClimbs && before != log_prob_; ++k) {
      before = log_prob_;
      if (!advance(0.0)) return false;
    }
    return true;
  };
  if (!climb()) return;
  measure_temperatures();
  for (std::uint64_t length = std::min(kFirstRound, longest);; length = std::min(2 * length, longest)) {
    for (std::uint64_t k = 0; k < length; ++k) {
      const double part = static_cast<double>(k) / static_cast<double>(std::max<std::uint64_t>(1, length - 1));
      if (!advance(hot_ * std::pow(cold_ / hot_, part))) return;
    }
    if (!climb()) return;
  }
}

bool BatchAnnealing::sweep(double temperature, const Hooks& hooks) {
  const std::size_t n = cardinalities_.size();
  losses_.clear();
  if (free_.empty() && hooks.is_over()) return false;
  for (const Index i : free_) {
    if (hooks.is_over()) return false;
    proposed_ = states_;
    for (std::size_t chain = 0; chain < kLockstep; ++chain) {
      proposed_[chain * n + i] = proposal(i, states_[chain * n + i]);
    }
    const std::vector<double> found = evaluate_(proposed_);
    for (std::size_t chain = 0; chain < kLockstep; ++chain) {
      const double u = rng_.uniform();
      const double here = log_prob_[chain];
      // Chains wander among impossible states until they meet a possible one.
      const bool rises = found[chain] >= here;
      const double loss = rises ? 0.0 : here - found[chain];
      if (loss > 0.0 && std::isfinite(loss)) losses_.push_back(loss);
      if (!rises && !(temperature > 0.0 && u < std::exp(-loss / temperature))) continue;
      states_[chain * n + i] = proposed_[chain * n + i];
      log_prob_[chain] = found[chain];
      hooks.visited(found[chain], std::span<const Value>(states_).subspan(chain * n, n));
    }
  }
  return true;
}

Value BatchAnnealing::proposal(Index variable, Value level) {
  const Index levels = cardinalities_[variable];
  if (levels == 2) return static_cast<Value>(1 - level);
  const auto other = static_cast<Value>(rng_.uniform() * (levels - 1));
  return other < level ? other : static_cast<Value>(other + 1);
}

/// As for spins: the hottest is below the typical loss of a change, the coldest below the small ones.
void BatchAnnealing::measure_temperatures() {
  if (losses_.empty()) return;
  double squares = 0.0;
  for (const double loss : losses_) squares += loss * loss;
  hot_ = 0.4 * std::sqrt(squares / static_cast<double>(losses_.size()));
  const auto small = losses_.begin() + static_cast<std::ptrdiff_t>(losses_.size() / 20);
  std::nth_element(losses_.begin(), small, losses_.end());
  cold_ = std::clamp(0.25 * *small, hot_ / 1000.0, hot_ / 4.0);
}

}  // namespace poise
