/// The network that a search for the most probable state works on: logarithms, with a price for every zero.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include <poise/network.hpp>
#include "exact/elimination_order.hpp"

namespace poise::network_search {

/// Zeros count as a loss that no sum of finite entries makes good, so that states are compared by the number of factors
/// at zero first, and a search may pass through them.
class LogNetwork {
 public:
  struct Link {  ///< a factor of a variable, and how far its levels lie apart in the table
    Index factor;
    std::size_t stride;
  };

  /// `network` has no observed variables, none of one level and no empty scopes; it must outlive this.
  explicit LogNetwork(const Network& network) : network_(network), graph_(exact::graph_of(network)) {
    const Index n = network.num_variables();
    for (std::size_t f = 0; f < network.num_factors(); ++f) {
      double least = 0.0;
      for (const double value : network.table(f)) {
        if (value > 0.0) least = std::min(least, std::log(value));
        has_zeros_ = has_zeros_ || value == 0.0;
      }
      double most = least;
      for (const double value : network.table(f)) {
        if (value > 0.0) most = std::max(most, std::log(value));
      }
      range_ += most - least;
      widest_ = std::max(widest_, most - least);
    }
    zero_ = -(2.0 * range_ + 1.0);
    logs_.reserve(network.values.size());
    for (const double value : network.values) logs_.push_back(value == 0.0 ? zero_ : std::log(value));
    link_start_.assign(n + 1, 0);
    for (const Index i : network.scopes) ++link_start_[i + 1];
    for (Index i = 0; i < n; ++i) link_start_[i + 1] += link_start_[i];
    links_.resize(network.scopes.size());
    strides_.resize(network.scopes.size());
    std::vector<std::size_t> next(link_start_.begin(), link_start_.end() - 1);
    for (std::size_t f = 0; f < network.num_factors(); ++f) {
      std::size_t stride = 1;
      for (std::size_t k = network.scope_start[f + 1]; k-- > network.scope_start[f];) {
        const Index i = network.scopes[k];
        strides_[k] = stride;
        links_[next[i]++] = {static_cast<Index>(f), stride};
        stride *= network.cardinalities[i];
      }
    }
    for (Index i = 0; i < n; ++i) {
      sweep_looks_ += static_cast<double>((link_start_[i + 1] - link_start_[i]) * network.cardinalities[i]);
    }
  }

  [[nodiscard]] Index size() const { return network_.num_variables(); }
  [[nodiscard]] Index levels(Index i) const { return network_.cardinalities[i]; }
  [[nodiscard]] std::size_t num_factors() const { return network_.num_factors(); }
  [[nodiscard]] const Network& network() const { return network_; }
  [[nodiscard]] const exact::Graph& graph() const { return graph_; }
  [[nodiscard]] std::span<const Link> links(Index i) const {
    return {links_.data() + link_start_[i], link_start_[i + 1] - link_start_[i]};
  }
  [[nodiscard]] std::span<const Index> scope(std::size_t f) const { return network_.scope(f); }
  [[nodiscard]] std::span<const std::size_t> strides(std::size_t f) const {
    return {strides_.data() + network_.scope_start[f], network_.scope(f).size()};
  }
  [[nodiscard]] const double* table(std::size_t f) const { return logs_.data() + network_.table_start[f]; }
  /// The first entry of the table of a factor among all `logs`.
  [[nodiscard]] std::size_t first(std::size_t f) const { return network_.table_start[f]; }
  [[nodiscard]] std::span<const double> logs() const { return logs_; }
  [[nodiscard]] bool has_zeros() const { return has_zeros_; }
  /// What stands for the logarithm of zero.
  [[nodiscard]] double zero() const { return zero_; }
  /// The widest range of finite entries of a factor.
  [[nodiscard]] double widest() const { return widest_; }
  /// Table entries that one sweep over all variables looks at: the unit of effort.
  [[nodiscard]] double sweep_looks() const { return std::max(1.0, sweep_looks_); }

  [[nodiscard]] std::size_t place(std::size_t f, std::span<const Value> x) const {
    std::size_t place = network_.table_start[f];
    for (std::size_t k = network_.scope_start[f]; k < network_.scope_start[f + 1]; ++k) {
      place += strides_[k] * x[network_.scopes[k]];
    }
    return place;
  }
  /// The sum of all factors, zeros at their price.
  [[nodiscard]] double value(std::span<const Value> x) const {
    double sum = 0.0;
    for (std::size_t f = 0; f < num_factors(); ++f) sum += logs_[place(f, x)];
    return sum;
  }
  [[nodiscard]] bool is_possible(std::span<const Value> x) const {
    if (!has_zeros_) return true;
    for (std::size_t f = 0; f < num_factors(); ++f) {
      if (logs_[place(f, x)] == zero_) return false;
    }
    return true;
  }
  /// Where equal sums of logarithms may differ.
  [[nodiscard]] double rounding() const { return 1e-12 * (1.0 + range_); }

 private:
  const Network& network_;
  exact::Graph graph_;
  std::vector<double> logs_;
  std::vector<std::size_t> link_start_;
  std::vector<Link> links_;
  std::vector<std::size_t> strides_;  ///< along the scopes
  double range_ = 0.0;
  double widest_ = 0.0;
  double zero_ = 0.0;
  double sweep_looks_ = 0.0;
  bool has_zeros_ = false;
};

}  // namespace poise::network_search
