/// Weights of all flips of a state in a tree of sums with 32 children a node: on a device, and on the host for tests.
///
/// Z(x) must be a function of the state alone, or the chain is not exact. Sums of integers are so in whatever order
/// they are made, but log ratios on graphs take any value, and integers of 64 bits span too few: where couplings are
/// strong, weights of likely states would all be rounded to nothing. So weights are doubles, and the order is fixed: a
/// node is always summed from its children, pairs, then pairs of pairs, never changed by a difference. However a state
/// was reached, equal weights have equal sums, to the last bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/cuda/common/both.hpp"
#include "engines/cuda/common/plain_arithmetic.hpp"

namespace poise::cuda {

inline constexpr std::uint32_t kChildren = 32;
inline constexpr std::uint32_t kMostTreeLevels = 7;  // 32^7 is more than a number of 32 bits

/// Where things are. Level 0 are the weights, the last level has at most 32 nodes; levels are filled up with zeros to
/// multiples of 32.
struct FlipTree {
  std::uint32_t levels = 1;
  std::uint32_t leaves = 0;                    ///< with those that fill up
  std::uint32_t nodes = 0;                     ///< of all levels above 0
  std::uint32_t first[kMostTreeLevels] = {};   ///< node of each level above 0
  std::uint32_t within[kMostTreeLevels] = {};  ///< nodes of each level, without those that fill up
};

inline FlipTree make_flip_tree(std::uint32_t weights) {
  const auto groups = [](std::uint32_t count) { return (count + kChildren - 1) / kChildren; };
  FlipTree tree;
  tree.leaves = groups(weights) * kChildren;
  tree.within[0] = weights;
  for (std::uint32_t count = weights; count > kChildren; ++tree.levels) {
    count = groups(count);
    tree.first[tree.levels] = tree.nodes;
    tree.within[tree.levels] = count;
    tree.nodes += groups(count) * kChildren;
  }
  return tree;
}

POISE_BOTH double sum_of_four(double a, double b, double c, double d) {
  return plain_sum(plain_sum(a, b), plain_sum(c, d));
}

/// A quarter of a node's children; four quarters are added in pairs too.
POISE_BOTH double sum_of_eight(const double* of) {
  return plain_sum(sum_of_four(of[0], of[1], of[2], of[3]), sum_of_four(of[4], of[5], of[6], of[7]));
}

/// The sum of 32 children, all by one thread.
POISE_BOTH double sum_of_children(const double* of) {
  return sum_of_four(sum_of_eight(of), sum_of_eight(of + 8), sum_of_eight(of + 16), sum_of_eight(of + 24));
}

}  // namespace poise::cuda
