/// What flips of an Ising model on a graph are worth: on a device, and on the host for tests.
///
/// Local fields are integers, so a log ratio is a function of the state to the last bit, and that of the flip back is
/// its negative. Products that are added to something are fused by name or not at all (see flip_tree.hpp): the same
/// flip has the same weight wherever it is computed.
#pragma once

#include <cmath>
#include <cstdint>

#include "engines/cuda/common/both.hpp"
#include "engines/cuda/flips/flip_tree.hpp"

namespace poise::cuda {

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
