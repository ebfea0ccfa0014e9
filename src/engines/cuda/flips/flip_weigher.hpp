/// What flips of an Ising model on a graph are worth: on a device, and on the host for tests.
///
/// Local fields are integers, so a log ratio is a function of the state to the last bit, and that of the flip back is
/// its negative. Products that are added to something are fused by name or not at all (see plain_product): the same
/// flip has the same weight wherever it is computed.
#pragma once

#include <cmath>
#include <cstdint>

#include "engines/common/host_device.hpp"

namespace poise::cuda {

// Weights of all flips of a state in a tree of sums with 32 children a node.
//
// Z(x) must be a function of the state alone, or the chain is not exact. Sums of integers are so in whatever order
// they are made, but log ratios on graphs take any value, and integers of 64 bits span too few: where couplings are
// strong, weights of likely states would all be rounded to nothing. So weights are doubles, and the order is fixed:
// a node is always summed from its children, pairs, then pairs of pairs, never changed by a difference. However a
// state was reached, equal weights have equal sums, to the last bit.

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

/// In the order of BalancingFunction::Kind.
enum class FlipFunction : std::uint32_t { sqrt, barker, min, max, table };

/// e^phi of a BalanceTable in one cell of its grid.
struct FlipCell {
  double intercept;
  double slope;
};
inline constexpr std::uint32_t kFlipCells = 256;
inline constexpr double kFlipCellsInOne = 8.0;
/// A cell that falls by more than doubles can tell would end below nothing.
inline constexpr double kLeastFactor = 1e-100;

/// Weights are g(e^u) e^-offset. Beyond `limit`, log ratios count as that: so all weights are between e^-340 and e^340,
/// none is ever 0, and a sum of them, or a quotient of two such sums, is a normal number. What is so left out of the
/// proposal is in the acceptance, see `beyond`. The offset is the function's alone: one that came from the states that
/// were met would make Z depend on the past.
struct FlipWeigher {
  FlipFunction function;
  double twice_unit;  ///< of local fields
  double limit;
  double offset;
  double tail_slope;      ///< of phi beyond the table
  const FlipCell* cells;  ///< of a table
};

/// Twice the local field of a variable, in units, plus 1 where it is up.
using SpinField = std::int64_t;

POISE_BOTH bool is_up(SpinField of) { return (of & 1) != 0; }

/// What becomes of a neighbour's when a variable flips: J (x' - x) = 2 J x' is added to the local field.
POISE_BOTH SpinField beside_flip(SpinField of, std::int64_t coupling, bool was_up) {
  const auto change = static_cast<std::uint64_t>(coupling) << 2;
  return static_cast<SpinField>(static_cast<std::uint64_t>(of) + (was_up ? ~change + 1 : change));
}

/// log p(x') / p(x) of the flip of a variable.
POISE_BOTH double log_ratio(const FlipWeigher& weigher, SpinField of) {
  const double u = plain_product(weigher.twice_unit, static_cast<double>(of >> 1));
  return is_up(of) ? -u : u;
}

/// By how much a log ratio is more than the weights say: 0 but for huge ones.
POISE_BOTH double beyond(const FlipWeigher& weigher, double u) {
  return u - fmin(fmax(u, -weigher.limit), weigher.limit);
}

POISE_BOTH double weight(const FlipWeigher& weigher, SpinField of) {
  const double u = fmin(fmax(log_ratio(weigher, of), -weigher.limit), weigher.limit);
  const double size = fabs(u);
  switch (weigher.function) {
    case FlipFunction::sqrt: return exp(fma(0.5, u, -weigher.offset));
    case FlipFunction::barker: return exp(fmin(u, 0.0) - weigher.offset) / plain_sum(1.0, exp(-size));
    case FlipFunction::min: return exp(fmin(u, 0.0) - weigher.offset);
    case FlipFunction::max: return exp(fmax(u, 0.0) - weigher.offset);
    case FlipFunction::table: break;
  }
  const double inside = fmin(size, kFlipCells / kFlipCellsInOne);
  const auto number = static_cast<std::uint32_t>(inside * kFlipCellsInOne);
  const FlipCell cell = weigher.cells[number < kFlipCells ? number : kFlipCells - 1];
  const double factor = fmax(fma(cell.slope, inside, cell.intercept), kLeastFactor);
  return plain_product(exp(fma(0.5, u, fma(weigher.tail_slope, size - inside, -weigher.offset))), factor);
}

/// The probability of accepting a flip, or more than 1: Z(x) and Z(x'), and what the weights leave out of the ratio.
POISE_BOTH double acceptance(const FlipWeigher& weigher, SpinField of, double total, double total_after) {
  const double more = beyond(weigher, log_ratio(weigher, of));
  const double ratio = total / total_after;
  return more == 0.0 ? ratio : ratio * exp(more);
}

}  // namespace poise::cuda
