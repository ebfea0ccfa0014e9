/// Tables of logarithms over a few variables, as elimination multiplies them and sums variables out.
///
/// Logarithms, because a product of a few tables of ordinary numbers can span more than the range of doubles, and a
/// zero that was none would be a wrong support. A row is summed after its largest entry was taken out: what vanishes is
/// below 1e-308 of the sum it would have gone into, and a sum is zero only where all of its entries are.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <poise/network.hpp>
#include "models/network/tables.hpp"

namespace poise::exact {

/// Entries like those of a factor: the last variable of the scope changes fastest. Zeros are minus infinity.
struct LogTable {
  std::vector<Index> scope;
  std::vector<double> logs;
};

/// A factor of a network, without its variables of one level. None of them is observed.
[[nodiscard]] inline LogTable log_table(const Network& network, std::size_t factor) {
  LogTable out;
  for (const Index i : network.scope(factor)) {
    if (network.cardinalities[i] > 1) out.scope.push_back(i);
  }
  const std::span<const double> table = network.table(factor);
  out.logs.reserve(table.size());
  for (const double value : table) out.logs.push_back(std::log(value));
  return out;
}

/// Multiplies `guest` into `host`, whose scope holds all of its variables.
inline void multiply_into(const LogTable& guest, LogTable& host, std::span<const Index> levels) {
  constexpr std::size_t enough = 64;
  TableWalk walk = walk_within(guest.scope, host.scope, levels);
  const std::vector<std::size_t> offsets = walk.take_fastest(enough);
  for (auto to = host.logs.begin(); to != host.logs.end(); to += static_cast<std::ptrdiff_t>(offsets.size())) {
    const double* from = guest.logs.data() + walk.offset();
    for (std::size_t k = 0; k < offsets.size(); ++k) to[static_cast<std::ptrdiff_t>(k)] += from[offsets[k]];
    walk.next();
  }
}

/// Makes the largest entry 0 and gives what it was: minus infinity where all entries are.
inline double rescale(LogTable& table) {
  const double largest = *std::max_element(table.logs.begin(), table.logs.end());
  if (largest == kMinusInfinity) return largest;
  for (double& value : table.logs) value -= largest;
  return largest;
}

/// Whether all entries are the same up to rounding: sums of conditional probabilities are 1 and not always to the last
/// bit.
[[nodiscard]] inline bool is_constant(const LogTable& table) {
  constexpr double rounding = 1e-14;
  const auto [least, most] = std::minmax_element(table.logs.begin(), table.logs.end());
  return *most - *least <= rounding;  // not where one is minus infinity: then the difference is no number, or infinite
}

/// Sums the last variable out, which has `levels` of them. For each configuration of the others `rows` gets levels - 1
/// cumulative conditional probabilities: u below the first one is level 0, and so on. From the last possible level on
/// they are exactly 1, so u < 1 never draws what is impossible.
[[nodiscard]] inline LogTable sum_out_last(const LogTable& table, Index levels, std::vector<double>& rows) {
  LogTable out;
  out.scope.assign(table.scope.begin(), table.scope.end() - 1);
  out.logs.reserve(table.logs.size() / levels);
  std::vector<double> weights(levels);
  for (auto row = table.logs.begin(); row != table.logs.end(); row += levels) {
    const double largest = *std::max_element(row, row + levels);
    if (largest == kMinusInfinity) {  // no draw comes here
      rows.insert(rows.end(), levels - 1, 1.0);
      out.logs.push_back(kMinusInfinity);
      continue;
    }
    double sum = 0.0;
    Index last_possible = 0;
    for (Index k = 0; k < levels; ++k) {
      weights[k] = row[k] == largest ? 1.0 : std::exp(row[k] - largest);
      sum += weights[k];
      if (weights[k] > 0.0) last_possible = k;
    }
    double below = 0.0;
    for (Index k = 0; k + 1 < levels; ++k) {
      below += weights[k];
      rows.push_back(k >= last_possible ? 1.0 : below / sum);
    }
    out.logs.push_back(largest + std::log(sum));
  }
  return out;
}

/// The same for maxima: the row of cumulative probabilities of a level that is certain, the first of the best ones.
[[nodiscard]] inline LogTable max_out_last(const LogTable& table, Index levels, std::vector<double>& rows) {
  LogTable out;
  out.scope.assign(table.scope.begin(), table.scope.end() - 1);
  out.logs.reserve(table.logs.size() / levels);
  for (auto row = table.logs.begin(); row != table.logs.end(); row += levels) {
    const auto best = std::max_element(row, row + levels);
    out.logs.push_back(*best);
    for (Index k = 0; k + 1 < levels; ++k) rows.push_back(k < best - row ? 0.0 : 1.0);
  }
  return out;
}

}  // namespace poise::exact
