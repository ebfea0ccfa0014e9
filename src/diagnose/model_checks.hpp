/// Checks of draws against their model: levels never visited, variables that never changed, gains by local moves.
///
/// Each check has two halves. What the model says is measured when a run ends, at a few of its states (`add_...`); what
/// to think of it is judged where a report is made, from effective sample sizes (`..._warnings`).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <poise/diagnose.hpp>
#include <poise/extend/engines/own_kernel.hpp>
#include <poise/model.hpp>

namespace poise {

/// States of all chains, equally many of each.
struct CheckedStates {
  std::vector<Value> levels;  ///< ((chain * per_chain) + state) * variables + variable
  std::size_t chains = 0;
  std::size_t per_chain = 0;
  Index variables = 0;

  [[nodiscard]] std::span<const Value> at(std::size_t chain, std::size_t state) const {
    return std::span(levels).subspan((chain * per_chain + state) * variables, variables);
  }
};

/// States that suffice: most errors of means are then below a tenth, and 64 states cost less than a hundredth of a run
/// of 4 x 2000 sweeps. Small models, where more cost nothing, have up to 256.
[[nodiscard]] inline std::size_t states_to_check(Index variables) {
  return std::clamp<std::size_t>((std::size_t{1} << 14) / std::max<Index>(1, variables), 64, 256);
}

/// What a single variable would be drawn from, all others given.
struct ConditionalLaw {
  std::size_t position;                ///< of the variable among those of the reader
  std::span<const double> log_ratios;  ///< of every level to the present one
  std::span<const double> probabilities;
};

/// Reads the laws of some variables, ascending and of more than one level each, at one state after another.
class LawReader {
 public:
  LawReader(const Model& model, const std::vector<Index>& variables);

  /// Calls `use` with the law of each variable. A state without probability, as hot chains may have, has none.
  template <class Use>
  void read(std::span<const Value> x, Use&& use) {
    const AnyTarget::State state = target_->make_state(x);
    if (!ratios_.empty()) target_->log_ratios(state, ratios_);
    for (std::size_t k = 0; k < places_.size(); ++k) {
      const auto [variable, first, levels] = places_[k];
      const Value here = x[variable];
      double largest = 0.0;
      for (Index level = 0; level < levels; ++level) {
        double u = 0.0;
        if (level != here) {
          u = ratios_.empty() ? target_->log_ratio(state, {variable, static_cast<Value>(level)})
                              : ratios_[first + (level < here ? level : level - 1)];
        }
        log_ratios_[level] = u;
        largest = std::max(largest, u);
      }
      if (!std::isfinite(largest)) continue;
      double sum = 0.0;
      for (Index level = 0; level < levels; ++level) {
        const double u = log_ratios_[level] - largest;
        sum += probabilities_[level] = u == 0.0 ? 1.0 : std::exp(u);
      }
      for (Index level = 0; level < levels; ++level) probabilities_[level] /= sum;
      use(ConditionalLaw{k, std::span(log_ratios_).first(levels), std::span(probabilities_).first(levels)});
    }
  }

 private:
  struct Place {
    Index variable;
    Index first;  // move
    Index levels;
  };
  std::shared_ptr<const AnyTarget> target_;
  std::vector<Place> places_;
  std::vector<double> ratios_;  // of all moves, which sparse targets have at once; else one by one
  std::vector<double> log_ratios_, probabilities_;
};

/// At stationarity a Gibbs update of one variable changes no mean. With u the log ratio of a level that it may be drawn
/// at, with probability q, and h odd, pairs of states cancel in E[sum q h(u)] = 0; h clips u to [-1, 1], so that single
/// large ratios do not count for more. A variable is found where the mean over the states of all chains, or of one, is
/// beyond what Hoeffding's inequality leaves to chance: kernels that lack local moves (two variables that always flip
/// together, say) are far beyond.
void add_local_gains(const Model& model, const CheckedStates& states, std::uint64_t seed, ModelChecks& checks);

/// The model as tables, which show what single changes do not; null where it has none, or where they would take longer
/// than the run: all states of user code may be at most a fiftieth of its `updates`.
[[nodiscard]] std::shared_ptr<const Network> tables_to_check(const Model& model, std::uint64_t updates);

/// What the model says of levels that no chain was at: `visited` has a number for each level of each variable, one for
/// an observed one, and is not 0 where some chain was. Networks and Ising models have exact marginals where a junction
/// tree takes a hundredth of `updates` of single variables. Elsewhere probabilities are those of conditional laws at
/// the states: of single variables, and where there are tables of a variable with those that zeros tie it to, or of all
/// neighbours that never changed either: four chains may all be in one of two modes. Of user code, variables that never
/// changed and could not alone are changed together: in every way, or in pairs where that takes too many values. Gives
/// those, ascending, that could not in pairs either, but may in larger groups.
std::vector<Index> add_level_checks(const Model& model, std::span<const std::uint8_t> visited,
                                    const CheckedStates& states, std::uint64_t updates, ModelChecks& checks);

/// Levels whose frequencies (of all levels but the first, variable by variable) are not their probabilities: of parts
/// of the model that depend on nothing else and whose junction tree takes a hundredth of `updates` of single variables.
void add_exact_checks(const Model& model, std::span<const double> frequencies, std::uint64_t updates,
                      ModelChecks& checks);

/// The sampler that crosses the barriers of the model, other than one that moves whole clusters already.
[[nodiscard]] std::string crossing_sampler(const ModelChecks& checks, const std::string& sampler);

/// What checks are judged by.
struct CheckedRun {
  std::span<const NamedSummary> monitors;
  const VariablesSummary& variables;  ///< may be empty
  std::span<const Index> frozen;      ///< RunResult::frozen
  const RunFacts& facts;

  /// Effective sample size of log p, or the number of draws where that is not defined.
  [[nodiscard]] double ess() const;
};

[[nodiscard]] std::string variable_name(const VariableNames& names, Index variable);

// One warning at most.

/// Levels of positive probability that should have been drawn.
[[nodiscard]] std::vector<Warning> unvisited_warnings(const ModelChecks& checks, const CheckedRun& run);
/// Levels that were drawn too often or too rarely, by exact marginals of small parts.
[[nodiscard]] std::vector<Warning> exact_warnings(const ModelChecks& checks, const CheckedRun& run);
/// Levels that are equally probable by symmetry and were not drawn equally often: chains that all are in the same of
/// several equivalent modes agree with each other.
[[nodiscard]] std::vector<Warning> symmetry_warnings(const ModelChecks& checks, const CheckedRun& run);
/// A mode in which chains from elsewhere stay and no draw is.
[[nodiscard]] std::vector<Warning> other_mode_warnings(const ModelChecks& checks, const CheckedRun& run);
/// Variables that never changed although they should have.
[[nodiscard]] std::vector<Warning> stuck_warnings(const ModelChecks& checks, const CheckedRun& run);
/// Whether nothing changed, and rightly so, as where evidence determines everything.
[[nodiscard]] bool is_determined(const ModelChecks& checks, const CheckedRun& run);
/// Variables that never changed, and rightly so: a sentence, or none.
[[nodiscard]] std::string certain_variables(const ModelChecks& checks, const CheckedRun& run);
[[nodiscard]] std::vector<Warning> local_gain_warnings(const ModelChecks& checks, const CheckedRun& run);

}  // namespace poise
