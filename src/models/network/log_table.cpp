/// Products and sums of tables of logarithms.
#include "models/network/log_table.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace poise::exact {

namespace {


/// A variable of the host: how far its next level is in the guest's table.
struct Digit {
  std::size_t stride;
  Index levels;
  Index level = 0;
};

/// The host's variables, the slowest first.
std::vector<Digit> digits_of(const LogTable& guest, const LogTable& host, std::span<const Index> levels) {
  std::vector<Digit> digits;
  digits.reserve(host.scope.size());
  for (const Index i : host.scope) digits.push_back({0, levels[i]});
  std::size_t stride = 1;
  for (std::size_t k = guest.scope.size(); k-- > 0;) {
    const auto place = std::find(host.scope.begin(), host.scope.end(), guest.scope[k]) - host.scope.begin();
    digits[static_cast<std::size_t>(place)].stride = stride;
    stride *= levels[guest.scope[k]];
  }
  return digits;
}

/// Places in the guest's table of the configurations of the fastest digits, which leave `digits`: the same at every
/// configuration of the slower ones, but for a constant.
std::vector<std::size_t> take_fastest(std::vector<Digit>& digits) {
  constexpr std::size_t enough = 64;
  std::vector<std::size_t> places = {0};
  while (!digits.empty() && places.size() < enough) {
    const Digit digit = digits.back();
    digits.pop_back();
    const std::size_t size = places.size();
    for (Index level = 1; level < digit.levels; ++level) {
      for (std::size_t k = 0; k < size; ++k) places.push_back(places[k] + level * digit.stride);
    }
  }
  return places;
}

}  // namespace

LogTable log_table(const Network& network, std::size_t factor) {
  LogTable out;
  for (const Index i : network.scope(factor)) {
    if (network.cardinalities[i] > 1) out.scope.push_back(i);
  }
  const std::span<const double> table = network.table(factor);
  out.logs.reserve(table.size());
  for (const double value : table) out.logs.push_back(std::log(value));
  return out;
}

void multiply_into(const LogTable& guest, LogTable& host, std::span<const Index> levels) {
  std::vector<Digit> digits = digits_of(guest, host, levels);
  const std::vector<std::size_t> places = take_fastest(digits);
  const double* from = guest.logs.data();
  double* to = host.logs.data();
  double* const end = to + host.logs.size();
  while (to != end) {
    for (std::size_t k = 0; k < places.size(); ++k) to[k] += from[places[k]];
    to += places.size();
    for (std::size_t k = digits.size(); k-- > 0;) {
      Digit& digit = digits[k];
      from += digit.stride;
      if (++digit.level < digit.levels) break;
      from -= digit.stride * digit.levels;
      digit.level = 0;
    }
  }
}

double rescale(LogTable& table) {
  const double largest = *std::max_element(table.logs.begin(), table.logs.end());
  if (largest == kMinusInfinity) return largest;
  for (double& value : table.logs) value -= largest;
  return largest;
}

bool is_constant(const LogTable& table) {
  constexpr double rounding = 1e-14;
  const auto [least, most] = std::minmax_element(table.logs.begin(), table.logs.end());
  return *most - *least <= rounding;  // not where one is minus infinity: then the difference is no number, or infinite
}

LogTable sum_out_last(const LogTable& table, Index levels, std::vector<double>& rows) {
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

}  // namespace poise::exact
