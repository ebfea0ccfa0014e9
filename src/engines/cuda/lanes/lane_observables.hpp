/// What is told of chains across the lanes of a GPU, from sums that were made there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engines/cuda/lanes/lane_block.hpp"
#include <poise/extend/engines/engine.hpp>
#include "models/ising/graph_ising.hpp"
#include "models/network/markov_network.hpp"

namespace poise {

[[nodiscard]] constexpr CudaLogSums log_sums_of(const MarkovNetwork&) { return CudaLogSums::in_order; }
[[nodiscard]] constexpr CudaLogSums log_sums_of(const GraphIsing&) { return CudaLogSums::in_integers; }

/// Whether sums are all that is wanted of draws.
[[nodiscard]] inline bool wants_sums_alone(const Observables& out) {
  return out.levels.empty() && out.frozen.empty() && out.empirical_marginals.empty() && out.evals.empty();
}

inline void observe_states(const MarkovNetwork& target, const CudaLaneSums& sums, const Observables& out) {
  for (std::size_t k = 0; k < out.log_prob.size(); ++k) out.log_prob[k] = target.log_prob_of(sums.units[k]);
  if (out.statistics.empty()) return;
  // Finding an order looks at all variables, and many chains have the same.
  std::vector<double> known(target.num_variables() + std::size_t{1}, -1.0);
  for (std::size_t k = 0; k < sums.at_level.size(); ++k) {
    double& order = known[sums.at_level[k]];
    if (order < 0.0) order = target.order(sums.at_level[k]);
    out.statistics[k] = order;
  }
}

inline void observe_states(const GraphIsing& target, const CudaLaneSums& sums, const Observables& out) {
  GraphIsing::State summed;
  for (std::size_t k = 0; k < sums.units.size(); ++k) {
    summed.log_prob = static_cast<std::int64_t>(sums.units[k]);
    summed.magnetization = 2 * std::int64_t{sums.at_level[k]} - static_cast<std::int64_t>(target.num_variables());
    if (!out.log_prob.empty()) out.log_prob[k] = target.log_prob(summed);
    if (!out.statistics.empty()) target.statistics(summed, out.statistics.subspan(k, 1));
  }
}

/// log p, statistics and distances of chains.
template <class T>
void observe_sums(const T& target, const CudaLaneSums& sums, const Observables& out) {
  observe_states(target, sums, out);
  if (!out.distance.empty()) std::copy(sums.different.begin(), sums.different.end(), out.distance.begin());
}

/// Draws that are asked for at once: several batches, as long as numbers of all chains take some megabytes.
[[nodiscard]] inline std::size_t lane_draws_at_once(std::size_t chains) {
  return std::clamp<std::size_t>((std::size_t{1} << 20) / std::max<std::size_t>(1, chains), 1, 512);
}

}  // namespace poise
