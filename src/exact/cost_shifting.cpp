/// Passes of cost shifting.
#include "exact/cost_shifting.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace poise {

namespace {

/// Passes end where ten of them in a row lower the bound by no more than this part of what all have.
constexpr double kLeastGain = 1e-4;
constexpr int kWindow = 10;
/// Logarithms below are raised to it: an entry that is too large keeps a bound a bound, one that vanishes does not.
constexpr double kLowestLog = -600.0;

}  // namespace

ShiftedCosts::ShiftedCosts(const Network& network, const ShiftOptions& options)
    : network_(network), uses_(network.num_variables()), alone_(network.num_variables()) {
  for (Index i = 0; i < network.num_variables(); ++i) alone_[i].assign(network.cardinalities[i], 0.0);
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    double least = std::numeric_limits<double>::infinity();
    double most = kMinusInfinity;
    for (const double value : network.table(f)) {
      if (value > 0.0) least = std::min(least, std::log(value));
      if (value > 0.0) most = std::max(most, std::log(value));
    }
    range_ += std::max(0.0, most - least) + std::abs(most);
  }
  // A finite price of a zero that no finite sum makes good.
  const double zero = -(4.0 * range_ + 1.0);
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    const std::span<const Index> scope = network.scope(f);
    Factor factor{
        {scope.begin(), scope.end()}, std::vector<std::size_t>(scope.size()), logs_.size(), network.table_size(f)};
    std::size_t stride = 1;
    for (std::size_t k = scope.size(); k-- > 0;) {
      factor.strides[k] = stride;
      stride *= network.cardinalities[scope[k]];
      uses_[scope[k]].emplace_back(f, k);
    }
    for (const double value : network.table(f)) {
      logs_.push_back(value > 0.0 ? std::log(value) : zero);
      is_zero_.push_back(value == 0.0);
    }
    factors_.push_back(std::move(factor));
  }
  bound_ = largest_sum();
  for (const Index levels : network.cardinalities) bound_with_.emplace_back(levels, bound_);
  const double first = bound_;
  double before = bound_;
  for (int passes = 0; operations_ < options.operations && !(options.halt && options.halt());) {
    pass(true);
    bound_ = largest_sum();
    pass(false);
    bound_ = largest_sum();
    if (++passes % kWindow > 0) continue;
    if (before - bound_ <= kLeastGain * (first - bound_)) break;
    before = bound_;
  }
}

/// Calls visit(level, first entry, entries) for all stretches of a table in which a variable keeps its level.
template <class Visit>
void ShiftedCosts::for_each_row(const Factor& factor, std::size_t member, const Visit& visit) const {
  const std::size_t stride = factor.strides[member];
  const Index levels = network_.cardinalities[factor.scope[member]];
  for (std::size_t at = 0; at < factor.size;) {
    for (Index level = 0; level < levels; ++level, at += stride) visit(level, factor.start + at, stride);
  }
}

void ShiftedCosts::max_marginal(const Factor& factor, std::size_t member, std::vector<double>& out) const {
  out.assign(network_.cardinalities[factor.scope[member]], kMinusInfinity);
  for_each_row(factor, member, [&](Index level, std::size_t first, std::size_t count) {
    double best = out[level];
    for (std::size_t k = first; k < first + count; ++k) best = std::max(best, logs_[k]);
    out[level] = best;
  });
}

void ShiftedCosts::add(const Factor& factor, std::size_t member, const std::vector<double>& by_level, double times) {
  for_each_row(factor, member, [&](Index level, std::size_t first, std::size_t count) {
    for (std::size_t k = first; k < first + count; ++k) logs_[k] += times * by_level[level];
  });
}

void ShiftedCosts::pass(bool forward) {
  const Index n = network_.num_variables();
  std::vector<double> marginal;
  for (Index k = 0; k < n; ++k) {
    const Index i = forward ? k : n - 1 - k;
    std::vector<double>& alone = alone_[i];
    std::size_t ahead = 0;
    std::size_t behind = 0;
    const auto reaches = [&](std::size_t f, bool up) {
      return std::ranges::any_of(factors_[f].scope, [&](Index j) { return up ? j > i : j < i; });
    };
    for (const auto& [f, member] : uses_[i]) {
      max_marginal(factors_[f], member, marginal);
      for (Index level = 0; level < marginal.size(); ++level) alone[level] += marginal[level];
      add(factors_[f], member, marginal, -1.0);
      ahead += reaches(f, forward) ? 1 : 0;
      behind += reaches(f, !forward) ? 1 : 0;
      operations_ += 2.0 * static_cast<double>(factors_[f].size);
    }
    const double largest = *std::max_element(alone.begin(), alone.end());
    for (Index level = 0; level < alone.size(); ++level) {
      bound_with_[i][level] = std::min(bound_with_[i][level], bound_ - (largest - alone[level]));
    }
    if (ahead == 0) continue;
    const double share = 1.0 / static_cast<double>(std::max(ahead, behind));
    for (const auto& [f, member] : uses_[i]) {
      if (reaches(f, forward)) add(factors_[f], member, alone, share);
    }
    for (double& log : alone) log *= 1.0 - share * static_cast<double>(ahead);
  }
}

double ShiftedCosts::largest_sum() const {
  double sum = 0.0;
  for (const Factor& factor : factors_) {
    const auto first = logs_.begin() + static_cast<std::ptrdiff_t>(factor.start);
    sum += *std::max_element(first, first + static_cast<std::ptrdiff_t>(factor.size));
  }
  for (const std::vector<double>& alone : alone_) sum += *std::max_element(alone.begin(), alone.end());
  return sum;
}

Network ShiftedCosts::shifted() const {
  Network out;
  out.name = network_.name;
  out.cardinalities = network_.cardinalities;
  std::vector<double> table;
  const auto scaled = [&](std::span<const double> logs) {
    const double largest = *std::max_element(logs.begin(), logs.end());
    table.clear();
    for (const double log : logs) table.push_back(std::exp(std::max(kLowestLog, log - largest)));
  };
  for (const Factor& factor : factors_) {
    scaled(std::span(logs_).subspan(factor.start, factor.size));
    for (std::size_t k = 0; k < factor.size; ++k) {
      if (is_zero_[factor.start + k]) table[k] = 0.0;
    }
    out.add_factor(factor.scope, table);
  }
  for (Index i = 0; i < network_.num_variables(); ++i) {
    scaled(alone_[i]);
    out.add_factor(std::vector<Index>{i}, table);
  }
  return out;
}

std::vector<bool> ShiftedCosts::ruled_out(double log_value) const {
  const double least = log_value - 1e-9 * (1.0 + range_);
  std::vector<bool> out;
  for (const std::vector<double>& of_variable : bound_with_) {
    for (const double bound : of_variable) out.push_back(bound < least);
  }
  return out;
}

}  // namespace poise
