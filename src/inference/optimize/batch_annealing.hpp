/// Annealing of many chains for user code that evaluates batches of states.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/optimize.hpp>

namespace poise {

/// log p of states, one behind the other.
using EvaluateStates = std::function<std::vector<double>(std::span<const Value>)>;

/// All chains propose a change of one variable at a time, so that one call evaluates all of them. Nothing about the
/// scale of log p has to be known: the first round climbs, and temperatures come from what changes lose where it ends.
class BatchAnnealing {
 public:
  struct Hooks {
    std::function<void(double log_prob, std::span<const Value> state)> visited;  ///< called after every change
    std::function<bool()> is_over;  ///< looked at before every call of the user's code
  };

  /// Variables that `start` fixes keep their level. `sweeps` counts those of one chain.
  BatchAnnealing(std::span<const Index> cardinalities, const OptimizeStart& start, EvaluateStates evaluate,
                 std::uint64_t seed);

  /// Rounds of at most this many sweeps, each twice as long as the one before, until it is over. Counts into `sweeps`.
  void run(std::uint64_t longest, std::uint64_t& sweeps, const Hooks& hooks);

 private:
  /// Every chain at every free variable once. False where it was over before.
  bool sweep(double temperature, const Hooks& hooks);
  [[nodiscard]] Value proposal(Index variable, Value level);
  void measure_temperatures();

  std::vector<Index> cardinalities_;
  std::vector<Index> free_;  // variables that can change
  EvaluateStates evaluate_;
  Rng rng_;
  std::vector<Value> states_;     // chain by chain
  std::vector<Value> proposed_;   // the same with one change each
  std::vector<double> log_prob_;  // of each chain
  std::vector<double> losses_;    // of changes to worse states, in the last sweep
  double hot_ = 1.0;
  double cold_ = 1.0;
};

}  // namespace poise
