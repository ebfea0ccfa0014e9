/// The two networks of the UAI experiment: read from files, or generated in their likeness.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include <poise/network.hpp>

namespace poise::reproduction {

struct UaiProblem {
  std::string name;
  std::shared_ptr<const Network> without_evidence;
  std::shared_ptr<const Network> network;  ///< with its evidence
  nlohmann::json fingerprint;              ///< tells this network from any other
};

/// BN_1 and BN_8, the paper's MN 1 and MN 2, with their evidence (BN_1.uai.evid) from a directory. Throws InputError.
[[nodiscard]] std::array<UaiProblem, 2> read_uai_problems(const std::string& directory);

/// Bayesian networks of the same size: a hundred binary variables, as many with as many parents, as many observed (at
/// values that a draw from the network has). Four in five rows of the tables are near-deterministic.
[[nodiscard]] std::array<UaiProblem, 2> generate_uai_problems(std::uint64_t seed);

}  // namespace poise::reproduction
