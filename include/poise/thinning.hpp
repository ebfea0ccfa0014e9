/// Draws of a run far enough apart to be taken for independent, as tests of whole samples want them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <poise/diagnose.hpp>
#include <poise/variables.hpp>

namespace poise {

struct Thinning {
  double effective = 0.0;  ///< smallest effective sample size of the series below; at most the number of draws
  std::size_t draws = 0;   ///< evenly spaced draws that are near independent: at least one, at most all
};

/// The series are the monitors of the run and the Hamming distances of its draws from sixteen of them: monitors may mix
/// well while the state does not (log p is the same in all the modes of a symmetric model), and a draw lies in one of
/// the modes, so that the distance from it tells them apart.
///
/// With autocorrelations rho^t the effective size of n draws is n / tau, tau = (1 + rho) / (1 - rho). Draws tau apart
/// still correlate, by e^-2 when tau is large, which is enough for a test at 5 % to reject up to thrice too often; so
/// the distance is such that they correlate by e^-4: 4 / log((tau + 1) / (tau - 1)), about 2 tau, and 1 as tau nears 1.
///
/// Series that never change say nothing. One whose effective size is undefined (chains of under 6 draws) counts each
/// chain as one draw, and so does a run of which no series changes.
[[nodiscard]] Thinning find_thinning(DrawsView draws, std::span<const ChainsView> monitors);

/// `count` draws at equal distances from all chains, one chain after the other; all of them when there are no more.
[[nodiscard]] std::vector<std::int8_t> evenly_spaced(DrawsView draws, std::size_t count);

}  // namespace poise
