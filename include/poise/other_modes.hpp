/// Chains of other runs that had settled far from an answer: signs of a mode that the chains behind it have missed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <poise/batch_means.hpp>

namespace poise {

/// What a chain settled to: the mean of each conditional probability over its later half, and its own error.
struct SettledChain {
  std::string sampler;
  std::size_t chain = 0;
  std::vector<SettledMean> entries;
};

struct OtherMode {
  std::size_t chain = 0;  ///< place among the chains
  std::size_t count = 0;  ///< probabilities that differ
  std::size_t worst = 0;  ///< entry that differs most
};

/// Chains may agree with each other and all have missed a mode. A chain of another run that stayed there differs from
/// their answer by more than 0.1 in some probability and by more than ten standard errors, its own and the answer's.
/// One that is still on its way has a large error of its own, and is no sign of anything. Gives the first such chain.
[[nodiscard]] std::optional<OtherMode> find_other_mode(std::span<const SettledChain> chains,
                                                       std::span<const double> answer, std::span<const double> errors);

}  // namespace poise
