/// Single flips on a lattice, locally balanced: what kernels work on, and how they are started.
///
/// Weights are integers, so sums of them are exact whatever order they are made in, and only the differences that a
/// flip makes are ever added. Rounding a weight changes the proposal a little and not the law: the acceptance takes it
/// into account.
#pragma once

#include <cstdint>

namespace poise::cuda {

/// Codes of a site: 5 for up (0 for down) plus the neighbours that are up.
inline constexpr unsigned kSiteCodes = 10;
/// Rows and columns of a lattice: a lane has up to two of each.
inline constexpr unsigned kMostSide = 64;

struct LatticeView {
  std::uint32_t rows;
  std::uint32_t columns;
  bool torus;
  const std::uint64_t* weights;    ///< [code][site]: of the flip of a site
  const double* corrections;       ///< [code][site]: p(x') w(x' -> x) / (p(x) w(x -> x')), 1 but for rounding
  const std::int64_t* fields;      ///< of each site, for log p; null where all are 0
  const std::uint32_t* reference;  ///< a state, as below

  std::uint32_t words_in_row;  ///< of 32 columns
};

struct FlipView {
  std::uint32_t* state;  ///< [chain][row][word]: bits of 32 columns
  double* accepted;      ///< acceptance probabilities of each chain, summed
  std::int64_t* up;      ///< [chain][site]: steps at which a site went down less those at which it went up; or null
  std::uint32_t chains;
  std::uint64_t first_chain;
  std::uint64_t seed;
  std::uint64_t first_step;
  std::uint64_t counted_from;  ///< the step at which counting began
  double stretch;              ///< of levels that acceptance is compared with (step_guards.hpp)
};
void launch_flips(const LatticeView& lattice, const FlipView& view, std::uint64_t steps);

struct FlipSums {
  std::int64_t* up;      ///< of each chain: variables
  std::int64_t* fields;  ///< of variables that are up
  std::int64_t* pairs;   ///< edges whose ends differ, on a graph by their weights
  std::int64_t* different;
};
void launch_flip_sums(const LatticeView& lattice, const std::uint32_t* state, std::uint32_t chains,
                      const FlipSums& sums);

/// The probabilities that a step from each state has: of proposing every site, as integers, and of accepting it.
void launch_flip_probabilities(const LatticeView& lattice, const std::uint32_t* state, std::uint32_t chains,
                               std::uint64_t* weights, double* acceptance);

}  // namespace poise::cuda
