/// Blocks of variables: how many configurations they can have, and balanced weights of all of them.
#include <poise/extend/kernels/block_moves.hpp>

#include <functional>

#include <fmt/format.h>

#include <poise/extend/base/hot.hpp>
#include <poise/extend/kernels/block_balanced.hpp>

namespace poise {

namespace {

constexpr auto kLimit = static_cast<double>(kMostConfigurations);

/// Configurations of a block that differ from a given one in at most `radius` variables: the sum of the elementary
/// symmetric polynomials of (cardinality - 1) up to that degree. In doubles, since it may be anything.
double count(std::span<const Index> block, std::size_t radius) {
  std::vector<double> exactly(std::min(radius, block.size()) + 1, 0.0);
  exactly[0] = 1.0;
  for (const Index cardinality : block) {
    for (std::size_t r = exactly.size(); r-- > 1;) exactly[r] += (cardinality - 1.0) * exactly[r - 1];
  }
  double sum = 0.0;
  for (const double number : exactly) sum += number;
  return sum;
}

/// The block that has the most configurations: that of the largest cardinalities.
std::vector<Index> largest_block(std::vector<Index> cardinalities, std::size_t size) {
  size = std::min(size, cardinalities.size());
  std::partial_sort(cardinalities.begin(), cardinalities.begin() + static_cast<std::ptrdiff_t>(size),
                    cardinalities.end(), std::greater<>());
  cardinalities.resize(size);
  return cardinalities;
}

std::size_t largest_size_that_fits(std::span<const Index> block, std::size_t radius) {
  std::size_t size = 1;
  while (size < block.size() && count(block.first(size + 1), radius) <= kLimit) ++size;
  return size;
}

/// Whole where doubles are.
std::string number(double value) { return value < 1e15 ? fmt::format("{:.0f}", value) : fmt::format("{:.2e}", value); }

}  // namespace

std::size_t most_configurations(std::vector<Index> cardinalities, std::size_t block) {
  const std::vector<Index> largest = largest_block(std::move(cardinalities), block);
  const double all = count(largest, largest.size());
  if (all <= kLimit) return static_cast<std::size_t>(all);
  throw InputError(
      fmt::format("found {} configurations of a block of {} variables, expected at most {} to weigh in one step: "
                  "block={} would fit",
                  number(all), largest.size(), kMostConfigurations, largest_size_that_fits(largest, largest.size())));
}

std::size_t most_configurations(std::vector<Index> cardinalities, std::size_t block, unsigned radius) {
  const std::vector<Index> largest = largest_block(std::move(cardinalities), block);
  const double all = count(largest, radius);
  if (all <= kLimit) return static_cast<std::size_t>(all);
  unsigned smaller = 0;
  while (count(largest, smaller + 1) <= kLimit) ++smaller;
  throw InputError(fmt::format(
      "found {} configurations within radius {} in a block of {} variables, expected at most {} to weigh in "
      "one step: {}block={},radius={} would fit",
      number(all), radius, largest.size(), kMostConfigurations,
      smaller == 0 ? "" : fmt::format("block={},radius={} or ", largest.size(), smaller),
      largest_size_that_fits(largest, radius), radius));
}

namespace {

/// Weights relative to e^offset; gives their sum, without that of the one that is looked from.
double fill(const BalancingFunction& function, BlockView& view) {
  const double sum = hot([&function, &view] {
    // A copy, so that no store in the loop can change it. NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
    const BalancingFunction own = function;
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
