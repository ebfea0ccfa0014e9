/// Modes by what stays away from all draws, and their probabilities by entropies of single variables.
#include "run/elsewhere.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "base/fiber_scheduler.hpp"
#include "run/quench.hpp"

namespace poise {

namespace {

constexpr double kFewestChains = 2.0, kMostChains = 8.0;
/// Sweeps of each, once it is warm: as many as a tenth of a usual run has, and no more than a usual run.
constexpr double kLeastSweeps = 8.0, kUsualSweeps = 64.0, kMostSweeps = 1024.0;
/// Of each path: the first half says where to look, the second whether the chain stays there.
constexpr std::size_t kPoints = 32;
constexpr std::size_t kFewestStates = 64;
/// A mode matters that has such a probability beside that of the draws.
constexpr double kMatters = 0.05;
/// States by which an entropy is estimated; each takes all conditional laws.
constexpr std::size_t kEntropyStates = 16;
constexpr std::uint64_t kOthers = std::uint64_t{1} << 20;  // numbers of chains that no sampler starts from

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// States in which frequencies of levels are counted.
class Frequencies {
 public:
  explicit Frequencies(const VariableLayout& layout) : first_(layout.variables + 1, 0) {
    for (Index i = 0; i < layout.variables; ++i) first_[i + 1] = first_[i] + layout.levels(i);
    counts_.assign(first_.back(), 0.0);
  }

  void add(std::span<const Value> x) {
    for (std::size_t i = 0; i < x.size(); ++i) counts_[first_[i] + x[i]] += 1.0;
    states_ += 1.0;
  }
  [[nodiscard]] double of(Index variable, Index level) const { return counts_[first_[variable] + level] / states_; }
  /// How far a state lies along the direction from `other` to this.
  [[nodiscard]] double project(std::span<const Value> x, const Frequencies& other) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto variable = static_cast<Index>(i);
      sum += of(variable, x[i]) - other.of(variable, x[i]);
    }
    return sum;
  }

 private:
  std::vector<std::size_t> first_;
  std::vector<double> counts_;
  double states_ = 0.0;
};

/// The sum over variables of the mean entropy of each, the others given. Where variables of a mode depend on each other
/// that is less than its entropy, in every mode alike.
double conditional_entropy(const Model& model, const std::vector<std::span<const Value>>& states) {
  std::vector<Index> variables;
  for (Index i = 0; i < model.layout.variables; ++i) {
    if (model.layout.levels(i) > 1) variables.push_back(i);
  }
  const LawReader all_laws(model, variables);
  std::vector<double> entropies(states.size(), 0.0);
  model.fibers()->for_each(states.size(), [&](std::size_t s) {
    LawReader laws = all_laws;
    laws.read(states[s], [&](const ConditionalLaw& law) {
      for (const double p : law.probabilities) entropies[s] -= p > 0.0 ? p * std::log(p) : 0.0;
    });
  });
  return mean_of(entropies);
}

/// Variables that no chain of the run changed, at another level in all later states of the chain.
std::vector<ModelChecks::Elsewhere> constants_elsewhere(const WarmedPaths& paths, std::size_t chain,
                                                        const CheckedStates& states, double gain,
                                                        const std::vector<ModelChecks::Constant>& constant) {
  std::vector<ModelChecks::Elsewhere> out;
  for (const ModelChecks::Constant& one : constant) {
    bool stays = true;
    for (std::size_t p = paths.points / 2; p < paths.points; ++p) {
      stays = stays && paths.at(chain, p)[one.variable] != states.at(0, 0)[one.variable];
    }
    if (stays) out.push_back({one.variable, gain});
  }
  return out;
}

/// What paths are compared with.
struct Draws {
  const CheckedStates& states;
  Frequencies frequencies;
  double log_prob;  // mean
};

/// Whether all later states of a path lie beyond all draws, along the direction to its earlier states.
bool stays_away(const WarmedPaths& paths, std::size_t chain, const VariableLayout& layout, const Draws& draws) {
  Frequencies earlier(layout);
  for (std::size_t p = 0; p < paths.points / 2; ++p) earlier.add(paths.at(chain, p));
  double farthest = -std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < draws.states.chains; ++c) {
    for (std::size_t s = 0; s < draws.states.per_chain; ++s) {
      farthest = std::max(farthest, earlier.project(draws.states.at(c, s), draws.frequencies));
    }
  }
  for (std::size_t p = paths.points / 2; p < paths.points; ++p) {
    if (!(earlier.project(paths.at(chain, p), draws.frequencies) > farthest)) return false;
  }
  return true;
}

double later_log_prob(const WarmedPaths& paths, std::size_t chain) {
  return mean_of(
      std::span(paths.log_prob).subspan(chain * paths.points + paths.points / 2, paths.points - paths.points / 2));
}

/// The levels that differ most.
void name_difference(const Model& model, const WarmedPaths& paths, std::size_t chain, const Draws& draws,
                     ModelChecks::OtherMode& mode) {
  Frequencies later(model.layout);
  for (std::size_t p = paths.points / 2; p < paths.points; ++p) later.add(paths.at(chain, p));
  double largest = -1.0;
  for (Index i = 0; i < model.layout.variables; ++i) {
    for (Index level = model.layout.levels(i) == 2 ? 1 : 0; level < model.layout.levels(i); ++level) {
      const double apart = std::abs(later.of(i, level) - draws.frequencies.of(i, level));
      if (apart <= largest) continue;
      largest = apart;
      mode.variable = i;
      mode.level = model.layout.label(static_cast<Value>(level));
      mode.here = draws.frequencies.of(i, level);
      mode.there = later.of(i, level);
    }
  }
}

void add_other_mode(const Model& model, const WarmedPaths& paths, const Draws& draws, ModelChecks& checks) {
  std::vector<std::size_t> away;
  for (std::size_t c = 0; c < paths.chains; ++c) {
    if (stays_away(paths, c, model.layout, draws)) away.push_back(c);
  }
  if (away.empty()) return;
  std::vector<std::span<const Value>> some;
  const std::size_t all = draws.states.chains * draws.states.per_chain;
  for (std::size_t k = 0; k < kEntropyStates; ++k) {
    const std::size_t s = k * all / kEntropyStates;
    some.push_back(draws.states.at(s / draws.states.per_chain, s % draws.states.per_chain));
  }
  const double here = draws.log_prob + conditional_entropy(model, some);
  ModelChecks::OtherMode mode{0, paths.chains, std::log(kMatters), 0, 0, 0.0, 0.0};
  for (const std::size_t c : away) {
    some.clear();
    for (std::size_t p = paths.points / 2; p < paths.points; ++p) some.push_back(paths.at(c, p));
    const double gain = later_log_prob(paths, c) + conditional_entropy(model, some) - here;
    if (!(gain >= std::log(kMatters))) continue;
    ++mode.chains;
    if (gain < mode.gain) continue;
    mode.gain = gain;
    name_difference(model, paths, c, draws, mode);
  }
  if (mode.chains > 0) checks.other = mode;
}

}  // namespace

void add_elsewhere(const Model& model, const CheckedStates& states, std::uint64_t work, RunResult& result) {
  if (result.trace.monitors.empty()) return;
  const auto cold = static_cast<double>(cost_of_quenched(model));
  const auto sweep = static_cast<double>(model.layout.variables);
  const double seconds = kElsewhereOfSeconds * result.options.seconds;
  const double fraction = seconds > 0.0 ? kElsewhereOfSeconds : kElsewhere;
  const double affordable = fraction * static_cast<double>(work);
  const double chains = std::clamp(std::floor(affordable / (cold + kUsualSweeps * sweep)), kFewestChains, kMostChains);
  // A call serves all chains, and may take as long for few as for many.
  const double calls = fraction * static_cast<double>(result.updates) / static_cast<double>(result.options.chains);
  const double sweeps = std::min(kMostSweeps, (std::min(affordable / chains, calls) - cold) / sweep);
  if (sweeps < kLeastSweeps) return;  // a run of a few hundred sweeps, of all chains together
  const std::size_t points = std::min(kPoints, static_cast<std::size_t>(sweeps));
  const WarmedPaths paths = warmed_paths(model,
                                         {.chains = static_cast<std::size_t>(chains),
                                          .seed = result.options.seed,
                                          .first_chain = kOthers,
                                          .seconds = seconds},
                                         static_cast<std::uint64_t>(sweeps), points);
  if (paths.chains == 0) return;
  Draws draws{states, Frequencies(model.layout), mean_of(result.trace.monitors.front())};
  for (std::size_t c = 0; c < states.chains; ++c) {
    for (std::size_t s = 0; s < states.per_chain; ++s) draws.frequencies.add(states.at(c, s));
  }
  double best = std::log(kMatters);
  for (std::size_t c = 0; c < paths.chains && !result.checks.constant.empty(); ++c) {
    const double gain = later_log_prob(paths, c) - draws.log_prob;
    if (!(gain >= best)) continue;
    std::vector<ModelChecks::Elsewhere> found = constants_elsewhere(paths, c, states, gain, result.checks.constant);
    if (found.empty()) continue;
    best = gain;
    result.checks.elsewhere = std::move(found);
  }
  const bool may_look = points == kPoints && states.chains * states.per_chain >= kFewestStates;
  if (may_look && result.checks.elsewhere.empty()) add_other_mode(model, paths, draws, result.checks);
}

}  // namespace poise
