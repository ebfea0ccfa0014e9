/// How many configurations a block can have, and what would fit where they are too many.
#include <poise/extend/kernels/block_moves.hpp>

#include <functional>

#include <fmt/format.h>

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

}  // namespace poise
