/// The paper's own numbers, the only ones that are not measured here.
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

}  // namespace poise::reproduction
