/// Whether a Gibbs update of one variable would still raise log p.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/fiber_scheduler.hpp"
#include "diagnose/model_checks.hpp"

namespace poise {

namespace {

/// False alarms: the fraction of faultless runs that warn.
constexpr double kFalseAlarms = 1e-4;
/// Variables that are looked at; the latter where every one costs as much as the state itself.
constexpr std::size_t kMostSparse = 4096;
constexpr std::size_t kMostDense = 32;
/// States of one chain that are judged by themselves. The limit for 12 states and three variables is 0.9, and 1 is the
/// largest mean there is.
constexpr std::size_t kLeastOfChain = 12;
constexpr std::size_t kMostGains = 1000;

/// Hoeffding: a mean of m independent numbers in an interval of length `range` is over its expectation by more than
/// this with probability kFalseAlarms / tests at most.
double gain_limit(double range, double m, std::size_t tests) {
  return range * std::sqrt(std::log(static_cast<double>(tests) / kFalseAlarms) / (2.0 * m));
}

/// Length of the interval of sum q h(u): its largest value is 1, its smallest is where all other levels have u = -1.
double range_of(Index levels) {
  const double others = static_cast<double>(levels) - 1.0;
  return 1.0 + others / (std::exp(1.0) + others);
}

struct GainSum {
  double gain = 0.0;
  double clipped = 0.0;

  void add(const GainSum& other) {
    gain += other.gain;
    clipped += other.clipped;
  }
};

GainSum gain_of(const ConditionalLaw& law) {
  GainSum sum;
  for (std::size_t k = 0; k < law.log_ratios.size(); ++k) {
    const double q = law.probabilities[k];
    if (!(q > 0.0)) continue;
    sum.gain += q * law.log_ratios[k];
    sum.clipped += q * std::clamp(law.log_ratios[k], -1.0, 1.0);
  }
  return sum;
}

/// All variables, or some at random, ascending.
std::vector<Index> variables_to_check(const Model& model, std::uint64_t seed) {
  std::vector<Index> chosen(model.layout.variables);
  std::iota(chosen.begin(), chosen.end(), Index{0});
  std::erase_if(chosen, [&](Index i) { return model.layout.levels(i) < 2; });
  const std::size_t most = model.sparse ? kMostSparse : kMostDense;
  if (chosen.size() <= most) return chosen;
  Rng rng = make_rng(seed, Stream::checks);
  for (std::size_t k = 0; k < most; ++k) {
    const auto other = static_cast<std::size_t>(rng.uniform() * static_cast<double>(chosen.size() - k));
    std::swap(chosen[k], chosen[k + other]);
  }
  chosen.resize(most);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

/// Gains of variables at every state of all chains, [state][variable]. States of user targets are looked at side by
/// side, so that one call serves all of them.
std::vector<GainSum> gains_at(const Model& model, const std::vector<Index>& variables, const CheckedStates& states) {
  const std::size_t count = states.chains * states.per_chain;
  std::vector<GainSum> out(count * variables.size());
  const LawReader all_laws(model, variables);
  const auto look = [&](LawReader& laws, std::size_t s) {
    laws.read(states.at(s / states.per_chain, s % states.per_chain),
              [&](const ConditionalLaw& law) { out[s * variables.size() + law.position] = gain_of(law); });
  };
  if (const std::shared_ptr<FiberScheduler> fibers = model.fibers()) {
    fibers->for_each(count, [&](std::size_t s) {
      LawReader laws = all_laws;
      look(laws, s);
    });
  } else {
    LawReader laws = all_laws;
    for (std::size_t s = 0; s < count; ++s) look(laws, s);
  }
  return out;
}

}  // namespace

LawReader::LawReader(const Model& model, const std::vector<Index>& variables) : target_(target_of(model)) {
  Index first = 0;
  Index next = 0;  // variable that `first` is the first move of
  Index most = 1;
  for (const Index i : variables) {
    for (; next < i; ++next) first += target_->cardinality(next) - 1;
    places_.push_back({i, first, target_->cardinality(i)});
    most = std::max(most, places_.back().levels);
  }
  // All at once are faster where many of them are wanted: one call of user code.
  const bool has_all = model.sparse || model.fibers() != nullptr;
  if (has_all && 4 * variables.size() > target_->num_variables()) ratios_.resize(target_->num_moves());
  log_ratios_.resize(most);
  probabilities_.resize(most);
}

void add_local_gains(const Model& model, const CheckedStates& states, std::uint64_t seed, ModelChecks& checks) {
  const std::vector<Index> variables = variables_to_check(model, seed);
  const std::vector<GainSum> found = gains_at(model, variables, states);
  const bool by_chain = states.chains > 1 && states.per_chain >= kLeastOfChain;
  const std::size_t tests = variables.size() * (by_chain ? states.chains + 1 : 1);
  std::vector<GainSum> all(variables.size());
  std::vector<GainSum> of_chain(variables.size());
  std::vector<double> gains(variables.size(), 0.0);  // the largest that is found, of each variable
  const auto judge = [&](const std::vector<GainSum>& sums, std::size_t count, std::size_t different) {
    for (std::size_t k = 0; k < sums.size(); ++k) {
      const double range = range_of(model.layout.levels(variables[k]));
      const double clipped = sums[k].clipped / static_cast<double>(count);
      if (clipped <= gain_limit(range, static_cast<double>(different), tests)) continue;
      gains[k] = std::max(gains[k], sums[k].gain / static_cast<double>(count));
    }
  };
  std::size_t different_in_all = 0;
  for (std::size_t c = 0; c < states.chains; ++c) {
    std::fill(of_chain.begin(), of_chain.end(), GainSum{});
    std::size_t different = 0;  // a state that a chain is still at says nothing new
    for (std::size_t s = 0; s < states.per_chain; ++s) {
      const std::span<const Value> x = states.at(c, s);
      if (s == 0 || !std::equal(x.begin(), x.end(), states.at(c, s - 1).begin())) ++different;
      const GainSum* const of_state = found.data() + (c * states.per_chain + s) * variables.size();
      for (std::size_t k = 0; k < of_chain.size(); ++k) of_chain[k].add(of_state[k]);
    }
    for (std::size_t k = 0; k < all.size(); ++k) all[k].add(of_chain[k]);
    if (by_chain) judge(of_chain, states.per_chain, different);
    different_in_all += different;
  }
  judge(all, states.chains * states.per_chain, different_in_all);
  for (std::size_t k = 0; k < gains.size(); ++k) {
    if (gains[k] > 0.0) checks.gains.push_back({variables[k], gains[k]});
  }
  std::stable_sort(checks.gains.begin(), checks.gains.end(),
                   [](const auto& a, const auto& b) { return a.gain > b.gain; });
  if (checks.gains.size() > kMostGains) checks.gains.resize(kMostGains);
  checks.tested_gains = tests;
}

std::vector<Warning> local_gain_warnings(const ModelChecks& checks, const CheckedRun& run) {
  if (checks.gains.empty()) return {};
  const ModelChecks::LocalGain& most = checks.gains.front();
  const std::string others = checks.gains.size() > 1 ? fmt::format(" (and of {} more)", checks.gains.size() - 1) : "";
  return {{"local_gain",
           fmt::format("A Gibbs update of {}{} would raise log p by {:.3g} on average, where 0 is right: the sampler "
                       "lacks local moves, and its draws are not those of the model",
                       variable_name(run.facts.names, most.variable), others, most.gain),
           "--sampler gibbs"}};
}

}  // namespace poise
