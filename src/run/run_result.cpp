/// Averages over chains.
#include "run/run_core.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <poise/extend/engines/division.hpp>
#include <poise/extend/engines/samplers.hpp>
#include "base/options.hpp"
#include "run/elsewhere.hpp"

namespace poise {

namespace {

void average_rao_blackwell(const Model& model, const Engine& engine, RunResult& result) {
  const Index entries = engine.traits().entries;
  const std::vector<double>& rounding = engine.traits().rounding;
  result.rao_blackwell.assign(entries, 0.0);
  result.rao_blackwell_mcse.assign(entries, 0.0);
  double visits = 0.0;
  for (std::size_t c = 0; c < engine.traits().chains; ++c) {
    const RaoBlackwell chain = rao_blackwell_of(engine, c);
    visits += static_cast<double>(chain.count);
    for (Index k = 0; k < chain.sums.size(); ++k) result.rao_blackwell[k] += chain.sums[k];
  }
  // A sum of n doubles is off by up to n 2^-53 of itself where all of them are alike. Log ratios of RBMs were found to
  // be off by up to 4e-9, and with them a probability by up to a quarter of that.
  const double summed = 1e-9 + visits / static_cast<double>(engine.traits().chains) * 0x1p-53;
  for (Index k = 0; k < entries; ++k) {
    result.rao_blackwell[k] = visits > 0.0 ? result.rao_blackwell[k] / visits : std::nan("");
    result.rao_blackwell_mcse[k] =
        std::hypot(standard_error(result.batches, k), summed, rounding.empty() ? 0.0 : rounding[k]);
  }
  result.rao_blackwell_mcse_of_zero.assign(model.layout.variables, 0.0);
  Index first = 0;
  for (Index i = 0; i < model.layout.variables; ++i) {
    const Index moves = model.layout.levels(i) - 1;
    if (moves == 0) continue;
    double squares = 0.0;
    for (Index k = first; k < first + moves && !rounding.empty(); ++k) squares += rounding[k] * rounding[k];
    result.rao_blackwell_mcse_of_zero[i] =
        std::hypot(standard_error(result.batches, first, moves), summed, std::sqrt(squares));
    first += moves;
  }
}

/// Marks the levels that a chain was at, by the fraction of its steps at each level above 0.
void add_visits(const VariableLayout& layout, std::span<const double> fractions, std::span<std::uint8_t> visited) {
  constexpr double kRounding = 1e-12;  // of sums of fractions; a run of 10^12 steps takes a day
  std::size_t entry = 0;
  std::size_t at = 0;
  for (Index i = 0; i < layout.variables; ++i) {
    double lowest = 1.0;
    std::uint8_t& first = visited[at++];
    for (Index k = 1; k < layout.levels(i); ++k, ++at) {
      lowest -= fractions[entry];
      if (fractions[entry++] > 0.0) visited[at] = 1;
    }
    if (lowest > kRounding) first = 1;
  }
}

/// Variables at one level in all chains, all the time, that no zero rules out other levels of by itself, and that every
/// chain ended with no way to change.
std::vector<Index> frozen_variables(const Model& model, const Engine& engine, std::span<const double> marginals) {
  const Index n = model.layout.variables;
  std::vector<std::uint8_t> frozen(n, 1);
  std::vector<std::uint8_t> here(n);
  for (std::size_t c = 0; c < engine.traits().chains; ++c) {
    observe_all(engine, {c, 1}, {.frozen = here});
    for (Index i = 0; i < n; ++i) frozen[i] = static_cast<std::uint8_t>(frozen[i] & here[i]);
  }
  std::vector<Index> out;
  Index first = 0;
  for (Index i = 0; i < n; ++i) {
    const std::span<const double> levels = marginals.subspan(first, model.layout.levels(i) - 1);
    first += model.layout.levels(i) - 1;
    const bool constant = std::all_of(levels.begin(), levels.end(), [](double p) { return p == 0.0 || p == 1.0; });
    if (constant && frozen[i] != 0 && model.possible(i) > 1) out.push_back(i);
  }
  return out;
}

/// Of user code nothing but its values is known: constant variables that may change together with others are not taken
/// for certain.
void report_undecided(const std::vector<Index>& undecided, RunResult& result) {
  result.frozen.insert(result.frozen.end(), undecided.begin(), undecided.end());
  std::sort(result.frozen.begin(), result.frozen.end());
  std::erase_if(result.checks.constant, [&](const ModelChecks::Constant& one) {
    return std::binary_search(undecided.begin(), undecided.end(), one.variable);
  });
}

/// What checks may take a part of: updates of single variables, and of user code all values that were computed, which
/// ladders and learning take more of.
std::uint64_t work_of(const Model& model, const RunResult& result) {
  if (model.fibers() == nullptr) return result.updates;
  return std::max(result.updates, result.evals.of_target() + result.warmup_evals.of_target());
}

/// Whether the sampler makes Gibbs updates of single variables, which then gain nothing by construction.
bool is_gibbs(const Sampler& sampler) {
  if (sampler.tempers()) return !sampler.of || is_gibbs(*sampler.of);
  return is_row<GibbsRow>(sampler) || is_row<RbmGibbsRow>(sampler);
}

/// The largest alpha that can be given by hand.
constexpr double kMostAlpha = 1e6;

/// What warm-up found, as it can be given by hand.
std::string step_length(const Sampler& sampler, double level) {
  if (is_row<DmalaRow>(sampler)) {
    // A level of 0 is no penalty at all. The key takes no infinity, but its largest number is none either.
    return fmt::format("step length found in warm-up: alpha={:.3g}", std::min(0.5 / std::abs(level), kMostAlpha));
  }
  if (is_row<PasRow>(sampler)) return fmt::format("step length found in warm-up: radius={:.0f}", std::exp(level));
  return fmt::format("step length found in warm-up: tau={:.3g}", std::exp(level));
}

}  // namespace

void add_function(const Sampler& sampler, const BalancingFunction& function, RunResult& result) {
  const Sampler& inner = sampler.of ? *sampler.of : sampler;
  result.balanced = is_balanced(inner);
  if (!result.balanced) return;
  if (inner.settings.tuning != StepTuning::fixed) result.notes.push_back(step_length(inner, function.level()));
  for (const double size : balance_grid()) {
    result.knots.push_back(size);
    result.log_phi.push_back(function.log_g(size) - 0.5 * size - function.log_g(0.0));
  }
}

void add_checks(const Model& model, const Sampler& sampler, std::span<const std::uint8_t> visited,
                const CheckedStates& states, const CheckedStates& all_states, RunResult& result) {
  if (states.levels.empty() || result.options.draws == 0) return;
  try {
    const std::uint64_t work = work_of(model, result);
    const std::vector<Index> undecided = add_level_checks(model, visited, states, work, result.checks);
    if (model.fibers() != nullptr && !result.independent) report_undecided(undecided, result);
    if (!result.independent &&
        looks_elsewhere(model, sampler, result.choice.has_value(), !result.checks.constant.empty())) {
      add_elsewhere(model, all_states, work, result);
    }
    if (!result.independent) add_exact_checks(model, result.empirical_marginals, work, result.checks);
    if (!is_gibbs(sampler)) add_local_gains(model, states, result.options.seed, result.checks);
  } catch (const RunStopped&) {
    result.interrupted = true;
  } catch (const std::exception& error) {
    if (model.fibers() == nullptr) throw;
    result.notes.push_back(
        fmt::format("draws were not checked, because the target failed beside one of them: {}", error.what()));
  }
}

std::optional<BestDraw> Run::Core::best_draw() const {
  if (!recorder) return std::nullopt;
  const BestState best = recorder->best(division.get());
  if (!best.any || recorder->draws() == 0) return std::nullopt;
  BestDraw out{recorder->objective(), best.value, best.chain, best.draw, {}};
  out.state.resize(best.levels.size());
  recorder->write_labels(best.levels, out.state.data());
  return out;
}

std::vector<std::uint8_t> add_marginals(const Model& model, const Engine& engine, RunResult& result) {
  const EngineTraits& traits = engine.traits();
  std::vector<std::uint8_t> visited(traits.entries + traits.variables, 0);
  result.empirical_marginals.assign(traits.entries, 0.0);
  std::vector<double> chain(traits.entries);
  for (std::size_t c = 0; c < traits.chains && result.trace.draws > 0; ++c) {
    observe_all(engine, {c, 1}, {.empirical_marginals = chain});
    for (Index k = 0; k < traits.entries; ++k) result.empirical_marginals[k] += chain[k];
    add_visits(model.layout, chain, visited);
  }
  for (double& fraction : result.empirical_marginals) fraction /= static_cast<double>(traits.chains);
  result.possible_levels = model.possible_levels;
  if (result.options.rao_blackwell) average_rao_blackwell(model, engine, result);
  if (model.into_support && result.trace.draws > 0) {
    result.frozen = frozen_variables(model, engine, result.empirical_marginals);
  }
  return visited;
}

nlohmann::json settings_json(const RunResult& result) {
  nlohmann::json out = options_json(result.options, Option::Role::setting);
  out.update({{"version", POISE_VERSION}, {"model", result.model}, {"sampler", result.sampler}});
  if (result.choice) out["choice"] = choice_json(*result.choice);
  if (result.spins) {
    out["spins"] = {{"sites", result.spins->sites},
                    {"coupling", result.spins->coupling},
                    {"order", result.spins->order},
                    {"order_size", result.spins->order_size}};
  }
  return out;
}

}  // namespace poise
