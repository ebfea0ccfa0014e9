/// One sampler on one model of the DISCS experiment: its chains, and what they are worth.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <poise/model.hpp>

#include "studies/discs/discs_cases.hpp"
#include "studies/estimate.hpp"
#include "studies/parts.hpp"

namespace poise::reproduction {

struct DiscsPlan {
  std::size_t chains = 16;
  std::uint64_t seed = 1;
  std::uint64_t first_chain = 0;
  std::uint64_t start_sweeps = 200;  ///< of Gibbs, from which all samplers begin
  bool ordered = false;              ///< whether Gibbs itself begins with all variables alike
  std::uint64_t thin = 1;            ///< steps per draw; 0: a sweep
  std::size_t draws = 1000;
  std::optional<std::size_t> warmup = std::nullopt;  ///< in draws; none: what the sampler needs
  double timing = 0.0;  ///< seconds for which steps are timed at least, where their number comes from them
};

/// Keys: sampler and chosen (specs), ess_per_step (of log p, per chain: mean, sd, chains), evaluations_per_step,
/// acceptance_rate, r_hat, steps (of a chain), warmup_steps, pilot (part of the work; of `auto`), seconds {total,
/// per_step of all chains}.
///
/// An evaluation is one look at the whole state: its gradient, or as many ratios as there are moves.
[[nodiscard]] nlohmann::json sample_discs(const Model& model, const std::string& sampler, const DiscsPlan& plan,
                                          const StopFlag& stop);

/// Effective samples of log p per step of a chain, as an estimate over chains.
[[nodiscard]] Estimate ess_per_step(const nlohmann::json& result);

}  // namespace poise::reproduction
