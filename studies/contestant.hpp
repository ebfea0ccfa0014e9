/// A sampler as it takes part in an experiment, and its burn-in with or without learning.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <poise/model.hpp>
#include <poise/run.hpp>
#include <poise/sampler.hpp>
#include <poise/extend/engines/tuner.hpp>

#include "studies/joint_engine.hpp"

namespace poise::reproduction {

struct Contestant {
  std::string key;                   ///< in the names of parts and in tables as CSV
  std::string label;                 ///< in figures and tables
  std::string sampler;               ///< its spec
  std::string column = {};           ///< of the paper's tables; empty where the paper has no such sampler
  std::string color = {};            ///< in all figures
  std::string dash = {};             ///< the same
  unsigned steps_per_iteration = 1;  ///< in burn-in: what one plotted iteration is made of
};

/// The four fixed functions and LSB 1: what the Ising and the network experiment have in common. `learning` are the
/// paper's settings of the latter.
[[nodiscard]] std::vector<Contestant> fixed_and_mixture(const std::string& learning);

struct BurnInPlan {
  std::uint64_t iterations = 0;
  std::uint64_t learning = 0;  ///< iterations after which a function that is learned from the first step on is frozen
};

/// A contestant's chains, watched step by step.
class ContestantRun {
 public:
  ContestantRun(const Model& model, const Contestant& contestant, std::vector<TunableEngine> chains);

  /// Moves all chains through burn-in and gives the balancing function that they sample with from then on.
  ///
  /// A sampler with `schedule=paper` learns as the paper's code does, at every step from the first, at the full rate
  /// and without averaging. (`poise sample` averages the second half of the parameters, which is better.)
  BalancingFunction burn_in(const BurnInPlan& plan);
  void advance(std::uint64_t steps) { run_->advance(steps); }

  [[nodiscard]] JointEngine& engine() { return *engine_; }
  void watch(JointEngine::Watch watch) { engine_->watch(std::move(watch)); }

 private:
  Contestant contestant_;
  Sampler sampler_;
  JointEngine* engine_;  // the run's
  std::unique_ptr<Run> run_;
};

/// phi of a balancing function at |u| = 0, 1/8, ..., 16, with phi(0) = 0.
[[nodiscard]] std::vector<double> tabulated(const BalancingFunction& balance);

/// Evaluations of the target by all chains so far, in any form, per chain.
[[nodiscard]] double evals_per_chain(const Engine& engine);

/// Levels of one chain.
[[nodiscard]] std::vector<Value> levels_of(const Engine& engine, std::size_t chain);
[[nodiscard]] double log_prob_of(const Engine& engine, std::size_t chain);
[[nodiscard]] Evals evals_of(const Engine& engine, std::size_t chain);

}  // namespace poise::reproduction
