/// The distance between two sets of draws, the maximum mean discrepancy, and a test of whether they have one law.
///
/// With k(x, y) = exp(-(number of variables that differ) / (number of variables)),
///   MMD^2(P, Q) = E k(x, x') + E k(y, y') - 2 E k(x, y),  x, x' ~ P and y, y' ~ Q, all independent
/// (Gretton, Borgwardt, Rasch, Schoelkopf and Smola 2012). The kernel is a product over the variables of kernels that
/// are strictly positive definite, hence so itself: MMD is 0 only where P = Q.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <poise/diagnose.hpp>

namespace poise {

/// Settings of the permutation test; time grows with permutations * N^2 for N draws in all.
struct MmdOptions {
  std::size_t permutations = 1000;  ///< of the test; the smallest p-value is 1 / (permutations + 1). 0: no test
  std::uint64_t seed = 1;           ///< of the permutations
  unsigned threads = 1;             ///< the result does not depend on it; 0: as many as the machine has
};

/// The distance of two samples and the p-value of the test.
struct MmdResult {
  std::size_t variables = 0;
  std::size_t draws_a = 0;
  std::size_t draws_b = 0;
  /// All pairs, a draw with itself included: the squared distance of the two empirical distributions. Never negative,
  /// exactly 0 when they are the same, and too large on average, by about (1 - E k) (1/draws_a + 1/draws_b).
  double v_statistic = 0.0;
  /// Pairs of different draws only: right on average, so that it may be negative. NaN for a sample of one draw.
  double u_statistic = std::numeric_limits<double>::quiet_NaN();
  std::size_t permutations = 0;
  std::size_t as_far = 0;  ///< permutations whose v_statistic is at least that of the samples
  double p_value = std::numeric_limits<double>::quiet_NaN();  ///< (as_far + 1) / (permutations + 1); NaN without a test

  [[nodiscard]] double mmd() const;        ///< root of the V-statistic
  [[nodiscard]] double log10_mmd() const;  ///< -infinity when it is 0
};

/// Both samples hold labels, draw after draw: that of `variable` is at draw * variables + variable.
///
/// The p-value is that of a permutation test: when both samples have one law and all draws are independent, every way
/// to split the pooled draws into two samples is as likely, so P(p_value <= u) <= u at any number of draws. It is
/// *not* so for successive draws of a chain; thin them first (thinning.hpp).
///
/// Takes 2 N^2 bytes for N draws in both samples together. Throws InputError for an empty sample, samples that are no
/// multiple of `variables`, and more than 65536 draws in all.
[[nodiscard]] MmdResult mmd(std::span<const std::int8_t> a, std::span<const std::int8_t> b, std::size_t variables,
                            const MmdOptions& options = {});

/// Draws of a run far enough apart to be taken for independent, as tests of whole samples need them.
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
