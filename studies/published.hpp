/// Numbers that experiments do not measure: those of the paper, and of the published DISCS code run beside ours.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "studies/estimate.hpp"

namespace poise::reproduction {

/// Table 2: effective sample size on an Ising case, 1 to 4, mean and standard deviation over 30 chains. `column` is
/// barker, sqrt, min, max, lsb1 or lsb2.
[[nodiscard]] std::optional<Estimate> published_ising(int number, std::string_view column);

/// Table 3: the same on Markov network 1 or 2, over 5 chains.
[[nodiscard]] std::optional<Estimate> published_uai(int number, std::string_view column);

/// Table 4: evaluations of the target per step, by method: gibbs-2, hb-10-1, flsb2, ...
[[nodiscard]] std::optional<double> published_rbm_evaluations(std::string_view method);

/// The published code on one model, by one of its samplers.
struct PeerRun {
  std::string_view model;         ///< key of the case
  std::string_view sampler;       ///< key of the sampler that does the same here
  double chain_steps_per_second;  ///< of all chains together
  double ess_per_step;            ///< of log p, mean over chains
  double acceptance_rate;

  [[nodiscard]] double ess_per_second() const { return chain_steps_per_second * ess_per_step; }
};

[[nodiscard]] std::span<const PeerRun> peer_runs();

/// How these numbers were obtained.
[[nodiscard]] std::string peer_method();

}  // namespace poise::reproduction
