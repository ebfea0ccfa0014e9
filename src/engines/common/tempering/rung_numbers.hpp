/// Ladders in which every rung has chains of its own, wherever they run: sizes, random streams, and what is carried
/// over when a ladder changes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include <poise/extend/base/concepts.hpp>

namespace poise {

inline constexpr std::size_t kFirstRungs = 16;
inline constexpr std::size_t kMostRungs = 128;
/// Sweeps of block Gibbs on an RBM between two swaps: one takes half as long as the swaps of a step, and leaves states
/// so much alike that the next swaps decide little anew.
inline constexpr std::uint64_t kSweepsOfRbm = 4;

/// Random streams of a rung's chains: a chain keeps its number at the cold rung of the first ladder; others lie apart
/// by more than there are chains. `generation` is how many times the ladder has changed.
[[nodiscard]] constexpr std::uint64_t stream_offset(std::size_t rungs_above, std::uint64_t generation) {
  return std::uint64_t{rungs_above} << 32 | generation << 40;
}

/// The rung of a ladder that is nearest to an inverse temperature.
[[nodiscard]] inline std::size_t nearest_rung(std::span<const double> betas, double beta) {
  const auto further = [&](double a, double b) { return std::abs(a - beta) < std::abs(b - beta); };
  return static_cast<std::size_t>(std::min_element(betas.begin(), betas.end(), further) - betas.begin());
}

/// What the chains of a ladder that is gone have done.
struct RungPast {
  double accepted = 0.0;
  Evals evals;

  template <class A>
  void archive(A& archive) {
    archive(accepted, evals);
  }
};

}  // namespace poise
