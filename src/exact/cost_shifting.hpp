/// An upper bound of the largest product of a network by shifting costs between its factors, and levels it rules out.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <poise/network.hpp>

namespace poise {

struct ShiftOptions {
  double operations = 2e8;               ///< table entries that passes look at, at most
  std::function<bool()> halt = nullptr;  ///< looked at between passes; true ends them
};

/// The same product in other factors: what is added to one factor for a variable is taken from another. The sum of the
/// largest logarithms of all factors bounds every state, and shifting lowers it, by sequential reweighted message
/// passing (Kolmogorov 2014): variables are visited in their order and back. Each takes what its factors say of its
/// levels and gives it to those that reach further in the direction of the pass.
class ShiftedCosts {
 public:
  /// `network` has no observed variables and no empty scopes; it must outlive this.
  ShiftedCosts(const Network& network, const ShiftOptions& options);

  [[nodiscard]] double log_bound() const { return bound_; }
  [[nodiscard]] double operations() const { return operations_; }
  /// The network with the shifted factors, each divided by its largest entry: the product of that and of
  /// e^log_bound() is no smaller than the product of `network`, at every state, and the same up to rounding but where
  /// an entry would be below the range of doubles.
  [[nodiscard]] Network shifted() const;
  /// Levels that no state of a logarithm of at least `log_value` has: true for each of them, variable by variable.
  [[nodiscard]] std::vector<bool> ruled_out(double log_value) const;

 private:
  struct Factor {
    std::vector<Index> scope;  ///< by variable, ascending
    std::vector<std::size_t> strides;
    std::size_t start;  ///< in `logs_`
    std::size_t size;
  };
  void pass(bool forward);
  void max_marginal(const Factor& factor, std::size_t member, std::vector<double>& out) const;
  void add(const Factor& factor, std::size_t member, const std::vector<double>& by_level, double times);
  [[nodiscard]] double largest_sum() const;
  template <class Visit>
  void for_each_row(const Factor& factor, std::size_t member, const Visit& visit) const;

  const Network& network_;
  std::vector<Factor> factors_;
  std::vector<double> logs_;
  std::vector<bool> is_zero_;
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>>
      uses_;                                ///< of a variable: factor and place in its scope
  std::vector<std::vector<double>> alone_;  ///< what is left with each variable
  /// A bound for each variable and level: no state with that level has a larger logarithm. Known best when a variable
  /// has just taken what its factors say, before it is given away.
  std::vector<std::vector<double>> bound_with_;
  double bound_ = 0.0;
  double range_ = 0.0;
  double operations_ = 0.0;
};

}  // namespace poise
