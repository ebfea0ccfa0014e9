/// The models of the DISCS benchmark and the samplers that are compared on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "studies/reproduce.hpp"
#include <poise/types.hpp>

#include "studies/contestant.hpp"

namespace poise::reproduction {

struct DiscsCase {
  std::string key;
  std::string label;
  std::string model;        ///< its spec; empty for an RBM
  Index hidden = 0;         ///< units of an RBM
  std::uint64_t steps;      ///< of samplers that change many variables a step
  std::uint64_t sweeps;     ///< of all others
  std::uint64_t tried = 0;  ///< steps at each step length of a grid; 0: a quarter of `steps`
  double coupling = 0.0;    ///< of the sweep of couplings; 0 elsewhere
  [[nodiscard]] bool in_sweep() const { return coupling > 0.0; }
};

/// What a step of a sampler is.
enum class Pace {
  change,  ///< one variable, chosen among all
  sweep,   ///< all variables in turn, or layer by layer
  many,    ///< many variables at once
  chosen   ///< that of the sampler that is chosen
};

struct DiscsSampler {
  Contestant contestant;  ///< its spec is without step length where there is a grid of them
  Pace pace = Pace::change;
  std::string length = {};        ///< the key of the step length
  std::vector<double> grid = {};  ///< step lengths to try; empty: none, or tuned by the sampler itself
  bool in_sweep = false;          ///< whether it takes part in the sweep of couplings
  bool rbm_only = false;
  [[nodiscard]] bool has_grid() const { return !grid.empty(); }
  /// A fixed function, and a step length that is given.
  [[nodiscard]] std::string with_length(double value) const;
};

/// The critical coupling of the square lattice, log(1 + sqrt 2) / 2.
inline constexpr double kCriticalCoupling = 0.44068679350977147;

/// Chains whose R-hat of log p is larger do not know log p yet, and their effective sample size means little.
inline constexpr double kAgree = 1.05;

[[nodiscard]] std::vector<DiscsCase> discs_cases(Effort effort, std::uint64_t seed);
[[nodiscard]] std::vector<DiscsSampler> discs_samplers(Effort effort);

}  // namespace poise::reproduction
