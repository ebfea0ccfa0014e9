/// Weights of the configurations of a block, seen from one of them.
#include <poise/extend/kernels/block_balanced.hpp>

#include <poise/extend/base/hot.hpp>

namespace poise {

namespace {

/// Weights relative to e^offset; gives their sum, without that of the one that is looked from.
double fill(const BalancingFunction& function, BlockView& view) {
  const double sum = hot([&function, &view] {
    const BalancingFunction own = function;  // so that no store in the loop can change it
    const double* const log_ratios = view.log_ratios.data();
    double* const weights = view.weights.data();
    const double offset = view.offset;
    Doubles8 total = {};
    weights[view.from] = 0.0;
    for (std::size_t k = 0; k < view.weights.size(); k += 8) {
      Doubles8 one = own.weights(load8(log_ratios + k), offset);
      if (view.from - k < 8) one.set(static_cast<unsigned>(view.from - k), 0.0);
      store8(weights + k, one);
      total += one;
    }
    return sum8(total);
  });
  return sum;
}

}  // namespace

bool BlockView::look(const BalancingFunction& function, std::span<const double> log_ratios_to_any, std::size_t number) {
  constexpr double none = -std::numeric_limits<double>::infinity();
  from = number;
  const std::size_t count = log_ratios_to_any.size();
  log_ratios.assign((count + 7) / 8 * 8, none);
  weights.resize(log_ratios.size());
  const double base = log_ratios_to_any[number];
  double largest = none;
  for (std::size_t k = 0; k < count; ++k) {
    const double log_ratio = log_ratios_to_any[k] - base;
    if (!is_legal(log_ratio)) return false;
    log_ratios[k] = log_ratio;
    if (k != number) largest = std::max(largest, log_ratio);
  }
  // Relative to the largest log g as a rule, so that the sum is in range; g need not be monotone.
  offset = largest > none ? function.log_g(largest) : 0.0;
  total = fill(function, *this);
  if (!(total > 1e-140 && total < 1e140) && largest > none) {
    offset = none;
    for (std::size_t k = 0; k < count; ++k) {
      if (k != number) offset = std::max(offset, function.log_g(log_ratios[k]));
    }
    total = fill(function, *this);
  }
  return true;
}

}  // namespace poise
