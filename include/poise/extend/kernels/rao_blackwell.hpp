/// Sums of conditional probabilities, P(variable at level | all others), over the states a chain has visited.
///
/// Their averages estimate the marginals with less noise than counting levels does (Rao and Blackwell): a visit tells
/// how likely each level was, not only which one came.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include <poise/extend/kernels/legal_numbers.hpp>
#include <poise/types.hpp>

namespace poise {

struct RaoBlackwell {
  std::vector<double> sums;  ///< at each (variable, level > 0); empty: not wanted
  std::uint64_t count = 0;   ///< visits of every variable

  template <class A>
  void archive(A& archive) {
    archive(sums, count);
  }

  /// Adds one visit of a variable at `level`, from the log ratios of its moves; `first` is the number of the first one.
  void add(Index first, std::span<const double> log_ratios, Value level) {
    double largest = 0.0;
    for (const double u : log_ratios) largest = std::max(largest, u);
    double total = std::exp(-largest);
    for (const double u : log_ratios) total += std::exp(u - largest);
    if (!(total > 0.0)) throw std::runtime_error(kBadLogRatio);  // NaN, also where the largest is +inf
    for (Index k = 0; k < log_ratios.size(); ++k) {
      const Index to = k < level ? k : k + 1;
      if (to > 0) sums[first + to - 1] += std::exp(log_ratios[k] - largest) / total;
    }
    if (level > 0) sums[first + level - 1] += std::exp(-largest) / total;
  }
};

}  // namespace poise
