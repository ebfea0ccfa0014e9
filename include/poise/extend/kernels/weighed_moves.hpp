/// Balanced weights g(e^u) of all moves of one state.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <poise/extend/learning/balancing_function.hpp>
#include <poise/extend/base/hot.hpp>
#include <poise/extend/kernels/legal_numbers.hpp>
#include <poise/types.hpp>

namespace poise {

struct WeighedMoves {
  std::vector<double> log_ratios;  ///< padded with -inf to a multiple of eight
  std::vector<double> weights;     ///< g e^-offset
  double offset = 0.0;
  double total = 0.0;

  void resize(Index moves) {
    log_ratios.resize((moves + std::size_t{7}) / 8 * 8, -std::numeric_limits<double>::infinity());
    weights.resize(log_ratios.size());
  }
  [[nodiscard]] double log_total() const { return std::log(total) + offset; }
  template <class A>
  void archive(A& archive) {
    archive(log_ratios, weights, offset, total);
  }
};

/// Fills weights by a balancing function at the present offset; gives their sum.
POISE_INLINE double fill_weights(const BalancingFunction& balance, WeighedMoves& out) {
  // Its own, so that no store in the loop can change it.
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const BalancingFunction function = balance;
  const double* const log_ratios = out.log_ratios.data();
  double* const weights = out.weights.data();
  const std::size_t size = out.weights.size();
  const double offset = out.offset;
  Doubles8 total = {};
  for (std::size_t k = 0; k < size; k += 8) {
    const Doubles8 one = function.weights(load8(log_ratios + k), offset);
    store8(weights + k, one);
    total += one;
  }
  return sum8(total);
}

/// Turns log ratios into weights, relative to the largest log g, so that the sum is never out of range. False where a
/// log ratio is illegal.
inline bool weigh_moves(const BalancingFunction& function, WeighedMoves& out) {
  return hot([&] {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::size_t padded = out.log_ratios.size();
    Doubles8 most = broadcast8(-infinity);
    Ints8 legal = all8(std::int64_t{-1});
    for (std::size_t k = 0; k < padded; k += 8) {
      const Doubles8 u = load8(out.log_ratios.data() + k);
      most = max8(most, u);
      legal = legal & legal8(u);
    }
    double largest = -infinity;
    for (unsigned lane = 0; lane < 8; ++lane) largest = std::max(largest, most[lane]);
    if (!all_of8(legal)) return false;
    out.offset = largest > -infinity ? function.log_g(largest) : 0.0;
    out.total = fill_weights(function, out);
    if (!(out.total > 1e-140 && out.total < 1e140) && largest > -infinity) {
      // g need not be monotone: look for its largest value.
      out.offset = -infinity;
      for (const double u : out.log_ratios) out.offset = std::max(out.offset, function.log_g(u));
      out.total = fill_weights(function, out);
    }
    return true;
  });
}

}  // namespace poise
