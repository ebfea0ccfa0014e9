/// Tables of logarithms over a few variables, as elimination multiplies them and sums variables out.
///
/// Logarithms, because a product of a few tables of ordinary numbers can span more than the range of doubles, and a
/// zero that was none would be a wrong support. A row is summed after its largest entry was taken out: what vanishes is
/// below 1e-308 of the sum it would have gone into, and a sum is zero only where all of its entries are.
#pragma once

#include <span>
#include <vector>

#include <poise/network.hpp>

namespace poise::exact {

/// Entries like those of a factor: the last variable of the scope changes fastest. Zeros are minus infinity.
struct LogTable {
  std::vector<Index> scope;
  std::vector<double> logs;
};

/// A factor of a network, without its variables of one level. None of them is observed.
[[nodiscard]] LogTable log_table(const Network& network, std::size_t factor);

/// Multiplies `guest` into `host`, whose scope holds all of its variables.
void multiply_into(const LogTable& guest, LogTable& host, std::span<const Index> levels);

/// Makes the largest entry 0 and gives what it was: minus infinity where all entries are.
double rescale(LogTable& table);

/// Whether all entries are the same up to rounding: sums of conditional probabilities are 1 and not always to the last
/// bit.
[[nodiscard]] bool is_constant(const LogTable& table);

/// Sums the last variable out, which has `levels` of them. For each configuration of the others `rows` gets levels - 1
/// cumulative conditional probabilities: u below the first one is level 0, and so on. From the last possible level on
/// they are exactly 1, so u < 1 never draws what is impossible.
[[nodiscard]] LogTable sum_out_last(const LogTable& table, Index levels, std::vector<double>& rows);

}  // namespace poise::exact
