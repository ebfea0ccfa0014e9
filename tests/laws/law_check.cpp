/// Laws: what chains do to exact draws, and where chains from one state end on distributions that are nearly flat.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <poise/extend/engines/samplers.hpp>
#include "laws/checks.hpp"

namespace poise::laws {

namespace {

/// Chains of a test. A cell of ten expected visits that is missed altogether, or one that is seen twice as often, adds
/// ten to chi-square.
constexpr std::size_t kChains = 2000;
/// The same where all chains teach a balancing function, are ladders or wait for user code: each costs some ten times
/// as much.
constexpr std::size_t kCostlyChains = 200;
/// False alarms are one in a billion.
constexpr double kGate = 6.0;
/// Distributions without zeros and with a smaller spread of log p are nearly flat: the conditional probability of a
/// level is at least e^-1 of that of another. A sweep then forgets more than half of where it began, so that after
/// forty of them nothing is left that two thousand chains could show.
constexpr double kFlat = 1.0;
constexpr std::size_t kSweepsToMix = 40;
constexpr std::size_t kDrawsAfter = 10;

/// How often each state was seen.
class StateCounts {
 public:
  explicit StateCounts(const Truth& truth) : truth_(truth), counts_(truth.space.size(), 0.0) {}

  void add(const RunResult& result, std::size_t chain, std::size_t draw) {
    const std::size_t n = result.layout.variables;
    const std::size_t row = chain * result.trace.draws + draw;
    std::size_t place = 0;
    for (Index i = 0; i < n; ++i) {
      Value level = 0;
      while (result.layout.label(level) != result.trace.x.label(row, i)) ++level;
      place += truth_.space.strides[i] * level;
    }
    ++counts_[place];
  }
  [[nodiscard]] double z() const { return chi_square_z(counts_, truth_.space); }

 private:
  const Truth& truth_;
  std::vector<double> counts_;
};

struct LawTest {
  const char* name;
  RunOptions options;
};

/// Each chain gives one of its draws, chosen by chance, so that what is counted is independent.
double z_of(const Trial& trial, const Sampler& sampler, const RunOptions& options) {
  const RunResult result = run(trial.small->model, sampler, options);
  StateCounts counts(*trial.truth);
  Rng choice(options.seed, 5);
  for (std::size_t c = 0; c < options.chains; ++c) {
    counts.add(result, c, static_cast<std::size_t>(choice.uniform() * static_cast<double>(result.trace.draws)));
  }
  return counts.z();
}

void check(const Trial& trial, const std::string& name, const LawTest& test, Tally& tally) {
  Checks& checks = tally.checks[test.name];
  double z = 0.0;
  try {
    z = z_of(trial, parse_sampler(name), test.options);
  } catch (const std::exception& error) {
    ++checks.done;
    ++checks.failed;
    trial.report(tally, {test.name, trial.small->kind, name, error.what(), trial.again(name)});
    return;
  }
  ++checks.done;
  checks.worst = std::max(checks.worst, std::abs(z));
  if (std::abs(z) < kGate) return;
  ++checks.failed;
  trial.report(tally, {test.name, trial.small->kind, name, fmt::format("z = {:.1f}", z), trial.again(name)});
}

}  // namespace

std::vector<Value> exact_draws(const Truth& truth, std::size_t count, std::uint64_t seed) {
  std::vector<double> cumulated;
  double sum = 0.0;
  for (const double p : truth.space.probabilities) cumulated.push_back(sum += p);
  Rng rng(seed, 3);
  std::vector<Value> draws;
  for (std::size_t c = 0; c < count; ++c) {
    auto found = std::upper_bound(cumulated.begin(), cumulated.end(), rng.uniform() * sum);
    if (found == cumulated.end()) --found;
    const std::vector<Value>& x = truth.space.states[static_cast<std::size_t>(found - cumulated.begin())];
    draws.insert(draws.end(), x.begin(), x.end());
  }
  return draws;
}

void check_laws(const Trial& trial, Tally& tally) {
  RunOptions base;
  base.draws = 1;
  base.seed = trial.run_seed();
  base.threads = 1;
  const auto from_exact_draws = [&](std::size_t chains) {
    RunOptions options = base;
    options.chains = chains;
    options.start = Start::given;
    options.given = exact_draws(*trial.truth, chains, trial.run_seed());
    return options;
  };
  LawTest plain{"law of steps", from_exact_draws(kChains)};
  plain.options.warmup = 0;
  plain.options.thin = 1 + trial.number % 4;
  LawTest tuned{"law after warm-up", from_exact_draws(kCostlyChains)};
  tuned.options.warmup = 10;
  LawTest flat{"law from one state", base};
  flat.options.warmup = kSweepsToMix;
  flat.options.draws = kDrawsAfter;
  flat.options.start = Start::zeros;
  const std::vector<double>& probabilities = trial.truth->space.probabilities;
  const bool is_flat = trial.truth->spread < kFlat && std::ranges::find(probabilities, 0.0) == probabilities.end();
  for (const std::string& name : trial.samplers) {
    const Sampler sampler = parse_sampler(name);
    const bool learns = sampler.learns() || is_row<WolffRow>(sampler);
    const bool is_costly = learns || sampler.tempers() || trial.small->model.fibers() != nullptr;
    flat.options.chains = is_costly ? kCostlyChains : kChains;
    // Ladders start out of equilibrium, and what chooses among samplers has no steps of its own.
    const bool keeps_law = !is_row<AutoRow>(sampler) && !sampler.tempers();
    if (keeps_law) check(trial, name, plain, tally);
    // Most of the work of all laws, so that a third of the samplers has its turn; one that is asked for has it always.
    const bool is_its_turn = !trial.sampler.empty() || trial.turn(name) % 3 == 0;
    if (keeps_law && learns && is_its_turn) check(trial, name, tuned, tally);
    if (is_flat) check(trial, name, flat, tally);
  }
}

}  // namespace poise::laws
