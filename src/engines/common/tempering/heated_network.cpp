/// Tables raised to a power.
#include "engines/common/tempering/heated_network.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace poise {

namespace {

/// How fast zeros harden towards beta = 1.
constexpr double kHardening = 5.0;
/// What a zero counts as is a double even where 1 - beta is the smallest there is.
constexpr double kLowestFloor = -500.0;

}  // namespace

SoftenedNetwork::SoftenedNetwork(std::shared_ptr<const Network> network) : network_(std::move(network)) {
  if (network_->has_zeros()) zeros_.assign(network_->values.size(), 0.0);
  logs_.assign(network_->values.size(), 0.0);
  std::vector<char> done(network_->values.size(), 0);  // by the start of a table: some are shared
  for (std::size_t f = 0; f < network_->num_factors(); ++f) {
    const std::size_t start = network_->table_start[f];
    if (std::exchange(done[start], 1) != 0) continue;
    const std::span<const double> table = network_->table(f);
    double smallest = std::numeric_limits<double>::infinity();
    for (const double value : table) smallest = value > 0.0 ? std::min(smallest, value) : smallest;
    const double floor = std::max(std::log(smallest), kLowestFloor);
    for (std::size_t e = 0; e < table.size(); ++e) {
      logs_[start + e] = table[e] > 0.0 ? std::log(table[e]) : floor;
      if (table[e] == 0.0) zeros_[start + e] = 1.0;
    }
  }
}

Network SoftenedNetwork::at(double beta) const {
  Network heated = *network_;
  const double hardening = kHardening * std::log1p(-beta);
  for (std::size_t e = 0; e < logs_.size(); ++e) {
    heated.values[e] = std::exp(beta * logs_[e] + (zeros_.empty() || zeros_[e] == 0.0 ? 0.0 : hardening));
  }
  return heated;
}

double SoftenedNetwork::change(std::span<const Value> x, double from, double to) const {
  double energy = 0.0;
  double zeros = 0.0;
  for (std::size_t f = 0; f < network_->num_factors(); ++f) {
    std::size_t index = 0;
    for (const Index i : network_->scope(f)) index = index * network_->cardinalities[i] + x[i];
    index += network_->table_start[f];
    energy += logs_[index];
    if (!zeros_.empty()) zeros += zeros_[index];
  }
  if (zeros == 0.0) return (to - from) * energy;
  return (to - from) * energy + kHardening * zeros * (std::log1p(-to) - std::log1p(-from));
}

}  // namespace poise
