/// Approach and adapt.
#include <poise/run/warmup.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace poise {

namespace {

/// A balancing function that will be used for as long as it takes.
constexpr std::uint64_t kForGood = std::numeric_limits<std::uint64_t>::max();

/// Says when log p has stopped rising in all chains, from their values at the ends of equal rounds.
class RiseDetector {
 public:
  explicit RiseDetector(std::size_t chains) : series_(chains) {}

  void add(std::size_t chain, double log_prob) { series_[chain].push_back(log_prob); }

  /// Compares the last quarter of every chain with the quarter before it.
  [[nodiscard]] bool still_rising() const {
    const std::size_t quarter = series_[0].size() / 4;
    if (quarter < 8) return true;
    return std::any_of(series_.begin(), series_.end(), [&](const std::vector<double>& values) {
      const Moments late = moments(values, values.size() - quarter, quarter);
      const Moments early = moments(values, values.size() - 2 * quarter, quarter);
      const double error = std::sqrt((late.variance + early.variance) / static_cast<double>(quarter));
      return late.mean - early.mean > 2.0 * error + 1e-9 * std::abs(late.mean);
    });
  }

 private:
  struct Moments {
    double mean;
    double variance;
  };
  static Moments moments(const std::vector<double>& values, std::size_t first, std::size_t count) {
    double mean = 0.0;
    for (std::size_t k = first; k < first + count; ++k) mean += values[k] / static_cast<double>(count);
    double square = 0.0;
    for (std::size_t k = first; k < first + count; ++k) square += (values[k] - mean) * (values[k] - mean);
    return {mean, square / static_cast<double>(count - 1)};
  }
  std::vector<std::vector<double>> series_;
};

/// The state of a warm-up under way.
class Warmup {
 public:
  Warmup(Ensemble& ensemble, ThreadPool& pool, std::uint64_t steps,
         const std::function<bool(Phase, std::uint64_t)>& report)
      : ensemble_(ensemble),
        pool_(pool),
        groups_(pool.groups(ensemble.num_chains(), ensemble.group_size())),
        total_(steps),
        report_(report) {
    record();
  }

  /// Moves all chains on; false when the user has stopped the run.
  bool advance(std::uint64_t steps, Phase phase) {
    for (std::uint64_t done = 0; done < steps;) {
      const std::uint64_t chunk = std::min(ensemble_.chunk(), steps - done);
      pool_.for_each(groups_.size(),
                     [&](std::size_t g) { ensemble_.advance(groups_[g].first, groups_[g].count, chunk); });
      done += chunk;
      outcome_.steps += chunk;
      if (!report_(phase, outcome_.steps)) return false;
    }
    record();
    return true;
  }

  /// Without learning there is nothing to decide: all steps, in rounds short enough for a smooth trace of log p.
  void plain() {
    while (outcome_.steps < total_) {
      const std::uint64_t steps = std::max(round_length(), outcome_.steps / 64);
      if (!advance(std::min(steps, total_ - outcome_.steps), Phase::initial)) return;
    }
  }

  bool approach() {
    RiseDetector detector(ensemble_.num_chains());
    while (outcome_.steps < total_ / 2) {
      const std::uint64_t steps = std::min(round_length(), total_ / 2 - outcome_.steps);
      const double before = accepted();
      if (!advance(steps, Phase::initial)) return false;
      escape_trap((accepted() - before) / static_cast<double>(steps * ensemble_.num_chains()));
      for (std::size_t c = 0; c < ensemble_.num_chains(); ++c) detector.add(c, ensemble_.log_prob(c));
      if (!detector.still_rising()) break;
    }
    outcome_.initial_steps = outcome_.steps;
    return true;
  }

  /// One update of the function per round. `at_every_step` is the paper's schedule.
  void adapt(const Sampler& sampler, bool at_every_step) {
    Learner learner(sampler.make_function(), sampler.learn);
    const std::size_t chains = ensemble_.num_chains();
    const TransitionGradientOptions needs = learner.objective().needs();
    std::vector<TransitionGradient> states(chains);
    std::vector<std::vector<double>> gradients(chains);
    const std::uint64_t available = total_ - outcome_.steps;
    // A round looks at every variable a few times over, so it should move a good part of them on.
    const std::uint64_t useful = std::max<std::uint64_t>(1, available / (ensemble_.steps_per_sweep() / 64 + 1));
    const std::uint64_t rounds = at_every_step ? available : std::min({available, kRounds, useful});
    outcome_.objective = std::numeric_limits<double>::quiet_NaN();
    const std::uint64_t start = outcome_.steps;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      ensemble_.set_function(learner.balance(), available / rounds * chains);
      pool_.for_each(chains, [&](std::size_t c) {
        ensemble_.prepare(c);
        ensemble_.transition_gradient(c, needs, states[c]);
      });
      learner.observe(states);
      pool_.for_each(chains, [&](std::size_t c) {
        std::vector<double> coefficients;
        learner.objective().coefficients(states[c], coefficients);
        gradients[c].assign(BalanceTable::kPoints, 0.0);
        ensemble_.add_gradient(c, states[c], coefficients, gradients[c]);
      });
      outcome_.objective = learner.objective().value(states);
      learner.update(states, gradients, static_cast<double>(round) / static_cast<double>(rounds));
      const auto share = static_cast<unsigned __int128>(available) * (round + 1) / rounds;
      const std::uint64_t until = start + static_cast<std::uint64_t>(share);
      if (!advance(until - outcome_.steps, Phase::adaptation)) break;
    }
    outcome_.balance = learner.freeze();
    ensemble_.set_function(outcome_.balance, kForGood);
    pool_.for_each(chains, [&](std::size_t c) { ensemble_.prepare(c); });
  }

  WarmupOutcome outcome_;

 private:
  static constexpr std::uint64_t kRounds = 1000;  // updates of the function at most, however long the warm-up

  /// An eighth of a sweep is fine enough to see log p rise; a long warm-up is not cut into more than a few thousand.
  [[nodiscard]] std::uint64_t round_length() const {
    return std::max({std::uint64_t{1}, ensemble_.steps_per_sweep() / 8, total_ / 4096});
  }

  /// Sum of acceptance probabilities of all chains.
  [[nodiscard]] double accepted() const {
    double sum = 0.0;
    for (std::size_t c = 0; c < ensemble_.num_chains(); ++c) sum += ensemble_.accepted(c);
    return sum;
  }

  /// Under strong couplings a flip towards higher probability can raise the ratios of its neighbours so much that Z(x')
  /// dwarfs Z(x) and the flip is refused. A bounded g cannot be trapped so; the approach goes on with t/(1+t) then.
  void escape_trap(double acceptance_rate) {
    if (escaped_ || acceptance_rate > 0.02) return;
    escaped_ = true;
    ensemble_.set_function(BalancingFunction(BalancingFunction::Kind::barker), kForGood);
    pool_.for_each(ensemble_.num_chains(), [&](std::size_t c) { ensemble_.prepare(c); });
  }

  void record() {
    double sum = 0.0;
    for (std::size_t c = 0; c < ensemble_.num_chains(); ++c) sum += ensemble_.log_prob(c);
    outcome_.trace.push_back({outcome_.steps, sum / static_cast<double>(ensemble_.num_chains())});
  }

  Ensemble& ensemble_;
  ThreadPool& pool_;
  std::vector<ChainGroup> groups_;
  std::uint64_t total_;
  bool escaped_ = false;
  const std::function<bool(Phase, std::uint64_t)>& report_;
};

}  // namespace

WarmupOutcome warm_up(Ensemble& ensemble, const Sampler& sampler, std::uint64_t steps, ThreadPool& pool,
                      const std::function<bool(Phase, std::uint64_t)>& report) {
  Warmup warmup(ensemble, pool, steps, report);
  warmup.outcome_.balance = BalancingFunction(sampler.function);
  warmup.outcome_.objective = std::numeric_limits<double>::quiet_NaN();
  if (!sampler.learns()) {
    warmup.plain();
  } else if (sampler.schedule == Sampler::Schedule::paper) {
    warmup.adapt(sampler, true);
  } else {
    ensemble.set_function(BalancingFunction(BalancingFunction::Kind::sqrt), kForGood);
    pool.for_each(ensemble.num_chains(), [&](std::size_t c) { ensemble.prepare(c); });
    if (warmup.approach()) warmup.adapt(sampler, false);
  }
  return std::move(warmup.outcome_);
}

}  // namespace poise
