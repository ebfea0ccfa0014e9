/// A sampler as it takes part in an experiment, and its burn-in with or without learning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <poise/run/ensemble.hpp>
#include <poise/run/model.hpp>
#include <poise/run/sampler.hpp>

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

/// Moves all chains through burn-in and gives the balancing function that they sample with from then on.
///
/// A sampler with `schedule=paper` learns as the paper's code does, at every step from the first, at the full rate and
/// without averaging. (`poise sample` averages the second half of the parameters, which is better.)
BalancingFunction burn_in(Ensemble& ensemble, const Contestant& contestant, const BurnInPlan& plan);

/// A state with every free variable at a level drawn uniformly. The same seed and chain give the same state.
[[nodiscard]] std::vector<Value> uniform_start(const Model& model, std::uint64_t seed, std::uint64_t chain);

/// phi of a balancing function at |u| = 0, 1/8, ..., 16, with phi(0) = 0.
[[nodiscard]] std::vector<double> tabulated(const BalancingFunction& balance);

/// Evaluations of the target by all chains so far, in any form, per chain.
[[nodiscard]] double evals_per_chain(const Ensemble& ensemble);

/// Acceptance probabilities of all chains so far, summed.
[[nodiscard]] double total_accepted(const Ensemble& ensemble);

}  // namespace poise::reproduction
