/// The published code of the DISCS benchmark, measured beside ours: the only numbers of the experiment that it does not
/// measure itself.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace poise::reproduction {

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
