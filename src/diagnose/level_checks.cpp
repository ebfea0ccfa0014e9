/// What a model says of levels that no chain was ever at.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>

#include "diagnose/model_checks.hpp"
#include "engines/cpu/chains/bonds.hpp"
#include "exact/block_laws.hpp"
#include "models/as_network.hpp"

namespace poise {

namespace {

/// Table entries that a junction tree may visit however short the run is: a few milliseconds.
constexpr double kFreeOperations = 1 << 21;
/// Table entries that take about as long as an update of one variable: some ten nanoseconds.
constexpr double kOperationsPerUpdate = 8.0;
/// The part of a run that checks may take.
constexpr double kFraction = 0.01;
/// User code is enumerated where that takes this part of the values of the run: one call, where the run makes many.
constexpr double kFractionOfCode = 0.02;
/// So many times as large a part where a variable never changed.
constexpr std::uint64_t kIfConstant = 5;
/// Variables of a block, the states that its laws are computed at, and the updates that one of these takes as long as:
/// some 50 microseconds.
constexpr std::size_t kBlockSize = 24;
constexpr std::size_t kBlockStates = 16;
constexpr double kUpdatesPerBlock = 5000.0;
constexpr double kLeastBlocks = 8.0;
/// Values of log p that take no time.
constexpr double kLeastValues = 64.0;
constexpr double kMostBlocks = 64.0;
constexpr double kLargestLogRatio = 600.0;
/// Standard errors from a mean to its bounds.
constexpr double kErrors = 3.0;
constexpr std::size_t kMostLevels = 1000;
/// Variables of a model that is made a network for checks: some ten milliseconds.
constexpr Index kMostConverted = 4096;

/// Mean of a probability over states, with its error by states or by chains, whichever is larger.
class MeanOfLaws {
 public:
  void add(double p) {
    ++states_;
    sum_ += p;
    squares_ += p * p;
    ++chain_states_;
    of_chain_ += p;
  }
  void end_chain() {
    if (chain_states_ == 0.0) return;
    const double mean = of_chain_ / chain_states_;
    ++chains_;
    chain_squares_ += mean * mean;
    of_chain_ = chain_states_ = 0.0;
  }
  [[nodiscard]] bool empty() const { return states_ == 0.0; }
  [[nodiscard]] double least() const { return std::max(0.0, mean() - kErrors * error()); }
  [[nodiscard]] double most() const { return mean() + kErrors * error(); }

 private:
  [[nodiscard]] double mean() const { return sum_ / states_; }
  [[nodiscard]] double error() const {
    const auto of = [](double count, double mean_square, double mean) {
      return count < 2.0 ? 0.0 : std::sqrt(std::max(0.0, mean_square - mean * mean) / (count - 1.0));
    };
    return std::max(of(states_, squares_ / states_, mean()), of(chains_, chain_squares_ / chains_, mean()));
  }

  double states_ = 0.0, sum_ = 0.0, squares_ = 0.0;
  double chain_states_ = 0.0, of_chain_ = 0.0, chains_ = 0.0, chain_squares_ = 0.0;
};

/// Variables with levels never visited, and bounds on the probability of each of their levels.
struct Suspects {
  std::vector<Index> variables;
  std::vector<std::size_t> first;  // of each of them, in the bounds
  std::vector<double> least;
  std::vector<double> most;
};

void bound_by_marginals(const Marginals& marginals, Suspects& suspects) {
  for (std::size_t k = 0; k < suspects.variables.size(); ++k) {
    const std::span<const double> law = marginals.of(suspects.variables[k]);
    std::copy(law.begin(), law.end(), suspects.least.begin() + static_cast<std::ptrdiff_t>(suspects.first[k]));
  }
  suspects.most = suspects.least;
}

/// Each level is as probable as the others.
void bound_by_symmetry(Index levels, Suspects& suspects) {
  std::fill(suspects.least.begin(), suspects.least.end(), 1.0 / static_cast<double>(levels));
  suspects.most = suspects.least;
}

/// By the laws of single variables.
void bound_by_laws(const Model& model, const CheckedStates& states, std::size_t per_chain, Suspects& suspects) {
  LawReader laws(model, suspects.variables);
  std::vector<MeanOfLaws> means(suspects.least.size());
  for (std::size_t c = 0; c < states.chains; ++c) {
    for (std::size_t s = 0; s < per_chain; ++s) {
      laws.read(states.at(c, s), [&](const ConditionalLaw& law) {
        std::size_t at = suspects.first[law.position];
        for (const double p : law.probabilities) means[at++].add(p);
      });
    }
    for (MeanOfLaws& mean : means) mean.end_chain();
  }
  for (std::size_t k = 0; k < means.size(); ++k) {
    suspects.least[k] = means[k].empty() ? 0.0 : means[k].least();
    suspects.most[k] = means[k].empty() ? 1.0 : means[k].most();
  }
}

/// Constant variables none of which has another possible level, the others given: their places among the suspects.
std::vector<std::size_t> blocked_variables(const Model& model, const CheckedStates& states,
                                           std::span<const std::uint8_t> constant, const Suspects& suspects) {
  std::vector<std::size_t> blocked;
  for (std::size_t k = 0; k < suspects.variables.size(); ++k) {
    const Index i = suspects.variables[k];
    if (constant[i] == 0) continue;
    const std::size_t here = suspects.first[k] + states.at(0, 0)[i];
    double most = 0.0;
    for (std::size_t at = suspects.first[k]; at < suspects.first[k] + model.layout.levels(i); ++at) {
      if (at != here) most = std::max(most, suspects.most[at]);
    }
    if (most == 0.0) blocked.push_back(k);
  }
  return blocked;
}

/// By all levels of blocked variables together, the others given. False where that takes too many values, or no state
/// has a probability.
bool bound_together(const Model& model, const CheckedStates& states, std::span<const std::size_t> blocked,
                    double most_values, Suspects& suspects) {
  double settings = 1.0;
  for (const std::size_t k : blocked) settings *= static_cast<double>(model.layout.levels(suspects.variables[k]));
  if (settings > most_values) return false;
  const auto target = target_of(model);
  const auto per_chain =
      static_cast<std::size_t>(std::clamp(most_values / (settings * static_cast<double>(states.chains)), 1.0,
                                          static_cast<double>(std::min(states.per_chain, kBlockStates))));
  const auto chains =
      std::min(states.chains, static_cast<std::size_t>(most_values / (settings * static_cast<double>(per_chain))));
  std::vector<MeanOfLaws> means(suspects.most.size());
  std::vector<double> law(suspects.most.size());
  for (std::size_t c = 0; c < chains; ++c) {
    for (std::size_t s = 0; s < per_chain; ++s) {
      std::vector<Value> x(states.at(c, s).begin(), states.at(c, s).end());
      const double here = target->log_prob(target->make_state(x));
      if (!std::isfinite(here)) continue;
      for (const std::size_t k : blocked) x[suspects.variables[k]] = 0;
      std::fill(law.begin(), law.end(), 0.0);
      double sum = 0.0;
      std::size_t next = 0;
      while (next < blocked.size()) {
        // Log ratios beyond what a double holds count as the largest.
        const double p = std::exp(std::min(target->log_prob(target->make_state(x)) - here, kLargestLogRatio));
        sum += p;
        for (const std::size_t k : blocked) law[suspects.first[k] + x[suspects.variables[k]]] += p;
        for (next = 0; next < blocked.size(); ++next) {
          const Index i = suspects.variables[blocked[next]];
          if (++x[i] < model.layout.levels(i)) break;
          x[i] = 0;
        }
      }
      for (const std::size_t k : blocked) {
        for (Index level = 0; level < model.layout.levels(suspects.variables[k]); ++level) {
          means[suspects.first[k] + level].add(law[suspects.first[k] + level] / sum);
        }
      }
    }
    for (MeanOfLaws& mean : means) mean.end_chain();
  }
  if (means[suspects.first[blocked.front()]].empty()) return false;
  for (std::size_t at = 0; at < means.size(); ++at) {
    if (means[at].empty()) continue;
    suspects.least[at] = means[at].least();
    suspects.most[at] = means[at].most();
  }
  return true;
}

/// By pairs of blocked variables: user code may let them change together only. Each pair is looked at in one state,
/// those close to each other first.
void bound_by_pairs(const Model& model, const CheckedStates& states, std::span<const std::size_t> blocked,
                    double most_values, Suspects& suspects) {
  const auto target = target_of(model);
  double tried = 0.0;
  std::size_t state = 0;
  for (std::size_t apart = 1; apart < blocked.size(); ++apart) {
    for (std::size_t b = apart; b < blocked.size(); ++b) {
      const std::array<std::size_t, 2> pair = {blocked[b - apart], blocked[b]};
      const std::array<Index, 2> both = {suspects.variables[pair[0]], suspects.variables[pair[1]]};
      const std::span<const Value> x = states.at(state++ % states.chains, 0);
      std::vector<Value> changed(x.begin(), x.end());
      const double before = target->log_prob(target->make_state(x));
      for (Index first = 0; first < model.layout.levels(both[0]); ++first) {
        for (Index second = 0; second < model.layout.levels(both[1]); ++second) {
          if (first == x[both[0]] || second == x[both[1]]) continue;
          if (++tried > most_values) return;
          changed[both[0]] = static_cast<Value>(first);
          changed[both[1]] = static_cast<Value>(second);
          const double gain = target->log_prob(target->make_state(changed)) - before;
          const double p = 1.0 / (1.0 + std::exp(-gain));
          for (const std::size_t at : {suspects.first[pair[0]] + first, suspects.first[pair[1]] + second}) {
            suspects.least[at] = std::max(suspects.least[at], p);
            suspects.most[at] = std::max(suspects.most[at], p);
          }
        }
      }
    }
  }
}

/// By changes of blocked variables together. Gives those of which larger changes than were tried may be possible: two
/// and more, as one alone is taken for certain.
std::vector<Index> bound_by_joint_changes(const Model& model, const CheckedStates& states,
                                          std::span<const std::uint8_t> constant, double most_values,
                                          Suspects& suspects) {
  std::vector<std::size_t> blocked = blocked_variables(model, states, constant, suspects);
  if (blocked.size() < 2 || bound_together(model, states, blocked, most_values, suspects)) return {};
  bound_by_pairs(model, states, blocked, most_values, suspects);
  blocked = blocked_variables(model, states, constant, suspects);
  std::vector<Index> undecided;
  for (const std::size_t k : blocked) undecided.push_back(suspects.variables[k]);
  return undecided.size() < 2 ? std::vector<Index>() : undecided;
}

/// By the laws of suspects with all that zeros tie them to, and of constant variables with each other: of those that
/// did not change or have a level that was out of reach at all states.
void bound_by_blocks(const Network& network, const CheckedStates& states, std::span<const std::uint8_t> constant,
                     double most_blocks, Suspects& suspects) {
  const BlockLaws blocks(network);
  const std::size_t per_chain = std::min(states.per_chain, (kBlockStates + states.chains - 1) / states.chains);
  std::vector<std::uint8_t> done(suspects.variables.size(), 0);
  double tried = 0.0;
  const auto is_out_of_reach = [&](std::size_t k) {
    const auto first = suspects.most.begin() + static_cast<std::ptrdiff_t>(suspects.first[k]);
    return std::find(first, first + network.cardinalities[suspects.variables[k]], 0.0) !=
           first + network.cardinalities[suspects.variables[k]];
  };
  for (std::size_t k = 0; k < done.size() && tried < most_blocks; ++k) {
    if (done[k] != 0 || (constant[suspects.variables[k]] == 0 && !is_out_of_reach(k))) continue;
    std::vector<Index> block = blocks.around(suspects.variables[k], constant, kBlockSize);
    if (block.size() < 2) continue;
    ++tried;
    while (block.size() > 1 && !blocks.laws(block, states.at(0, 0), kFreeOperations / 64)) {
      block.resize(block.size() / 2);
    }
    std::vector<std::vector<MeanOfLaws>> means;
    for (const Index i : block) means.emplace_back(network.cardinalities[i]);
    for (std::size_t c = 0; c < states.chains; ++c) {
      for (std::size_t s = 0; s < per_chain; ++s) {
        const auto laws = blocks.laws(block, states.at(c, s), kFreeOperations / 64);
        for (Index b = 0; laws && b < block.size(); ++b) {
          for (Index level = 0; level < means[b].size(); ++level) means[b][level].add(laws->of(b)[level]);
        }
      }
      for (auto& of_variable : means) {
        for (MeanOfLaws& mean : of_variable) mean.end_chain();
      }
    }
    for (std::size_t b = 0; b < block.size(); ++b) {
      const auto found = std::lower_bound(suspects.variables.begin(), suspects.variables.end(), block[b]);
      if (found == suspects.variables.end() || *found != block[b]) continue;
      const auto which = static_cast<std::size_t>(found - suspects.variables.begin());
      done[which] = 1;
      for (std::size_t level = 0; level < means[b].size(); ++level) {
        const MeanOfLaws& mean = means[b][level];
        if (mean.empty()) continue;
        double& least = suspects.least[suspects.first[which] + level];
        double& most = suspects.most[suspects.first[which] + level];
        least = std::max(least, mean.least());
        most = std::max(most, mean.most());
      }
    }
  }
}

/// ModelChecks::interchangeable. A flip of all spins leaves products of two as they are.
Index interchangeable_levels(const Model& model) {
  const auto of_spins = [](const SpinGraph auto& target) -> Index {
    for (Index i = 0; i < target.num_variables(); ++i) {
      if (target.field(i) != 0.0) return 0;
    }
    return 2;
  };
  if (const auto* lattice = std::get_if<std::shared_ptr<const LatticeIsing>>(&model.description)) {
    return of_spins(**lattice);
  }
  if (const auto* graph = std::get_if<std::shared_ptr<const GraphIsing>>(&model.description)) return of_spins(**graph);
  if (const auto* described = std::get_if<NetworkDescription>(&model.description)) {
    const Network& network = *described->network;
    return lacks_clusters(network).empty() ? network.cardinalities[0] : 0;
  }
  return 0;
}

bool has_clusters(const Model& model) {
  if (const auto* lattice = std::get_if<std::shared_ptr<const LatticeIsing>>(&model.description)) {
    return lacks_clusters(**lattice).empty();
  }
  if (const auto* graph = std::get_if<std::shared_ptr<const GraphIsing>>(&model.description)) {
    return lacks_clusters(**graph).empty();
  }
  const auto* described = std::get_if<NetworkDescription>(&model.description);
  return described != nullptr && lacks_clusters(*described->network).empty();
}

}  // namespace

std::shared_ptr<const Network> tables_to_check(const Model& model, std::uint64_t updates) {
  const bool is_network = std::holds_alternative<NetworkDescription>(model.description);
  if (!is_network && model.layout.variables > kMostConverted) return nullptr;
  const bool is_user_code = model.fibers() != nullptr;
  if (is_user_code && number_of_states(model) > kFractionOfCode * static_cast<double>(updates)) return nullptr;
  try {
    return as_network(model);
  } catch (const InputError&) {
    return nullptr;  // couplings that no table holds
  }
}

std::vector<Index> add_level_checks(const Model& model, std::span<const std::uint8_t> visited,
                                    const CheckedStates& states, std::uint64_t updates, ModelChecks& checks) {
  const VariableLayout& layout = model.layout;
  checks.interchangeable = interchangeable_levels(model);
  checks.clusters = has_clusters(model);
  checks.low = layout.label(0);
  checks.high = layout.label(1);
  Suspects suspects;
  std::vector<std::size_t> first(layout.variables + 1, 0);  // of each variable, in `visited`
  std::vector<std::uint8_t> constant(layout.variables, 0);
  std::size_t levels = 0;
  for (Index i = 0; i < layout.variables; ++i) {
    first[i + 1] = first[i] + layout.levels(i);
    const auto of_variable = visited.subspan(first[i], layout.levels(i));
    const auto missed = static_cast<std::size_t>(std::count(of_variable.begin(), of_variable.end(), 0));
    constant[i] = of_variable.size() > 1 && missed + 1 == of_variable.size() ? 1 : 0;
    if (missed == 0) continue;
    checks.tested_levels += missed;
    suspects.variables.push_back(i);
    suspects.first.push_back(levels);
    levels += of_variable.size();
  }
  if (levels == 0) return {};
  suspects.least.resize(levels);
  suspects.most.resize(levels);
  const double budget = kFraction * static_cast<double>(updates);
  const bool has_constant = std::find(constant.begin(), constant.end(), 1) != constant.end();
  const std::shared_ptr<const Network> network = tables_to_check(model, updates * (has_constant ? kIfConstant : 1));
  std::optional<Marginals> marginals;
  std::vector<Index> undecided;
  if (network) marginals = cheap_marginals(*network, std::max(kFreeOperations, kOperationsPerUpdate * budget));
  checks.exact = marginals.has_value();
  if (marginals) {
    bound_by_marginals(*marginals, suspects);
  } else if (checks.interchangeable > 0) {
    bound_by_symmetry(checks.interchangeable, suspects);
  } else {
    const double affordable = budget / static_cast<double>(suspects.variables.size() * states.chains);
    const auto most = static_cast<double>(states.per_chain);
    const std::size_t per_chain =
        model.sparse ? states.per_chain : static_cast<std::size_t>(std::clamp(affordable, std::min(most, 4.0), most));
    bound_by_laws(model, states, per_chain, suspects);
    const double blocks = std::clamp(budget / (kBlockStates * kUpdatesPerBlock), kLeastBlocks, kMostBlocks);
    if (network) {
      bound_by_blocks(*network, states, constant, blocks, suspects);
    } else {
      undecided = bound_by_joint_changes(model, states, constant, std::max(budget, kLeastValues), suspects);
    }
  }
  for (std::size_t k = 0; k < suspects.variables.size(); ++k) {
    const Index i = suspects.variables[k];
    ModelChecks::Constant others{i, 0.0, 0.0};
    for (Index level = 0; level < layout.levels(i); ++level) {
      if (visited[first[i] + level] != 0) continue;
      const double least = suspects.least[suspects.first[k] + level];
      others.least += least;
      others.most += suspects.most[suspects.first[k] + level];
      if (constant[i] == 0 && least > 0.0) {
        checks.unvisited.push_back({i, layout.label(static_cast<Value>(level)), least});
      }
    }
    if (constant[i] != 0) checks.constant.push_back(others);
  }
  std::stable_sort(checks.unvisited.begin(), checks.unvisited.end(),
                   [](const auto& a, const auto& b) { return a.probability > b.probability; });
  std::stable_sort(checks.constant.begin(), checks.constant.end(),
                   [](const auto& a, const auto& b) { return a.least > b.least; });
  if (checks.unvisited.size() > kMostLevels) checks.unvisited.resize(kMostLevels);
  return undecided;
}

}  // namespace poise
