/// The smallest of many numbers while they change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <poise/types.hpp>

namespace poise::exact {

/// Blocks of numbers, the smallest of each block a number one level up.
class Smallest {
 public:
  static constexpr double kOut = std::numeric_limits<double>::infinity();

  explicit Smallest(std::vector<double> numbers) {
    levels_.push_back(std::move(numbers));
    while (levels_.back().size() > 1) {
      std::vector<double>& below = levels_.back();
      below.resize((below.size() + kBlock - 1) / kBlock * kBlock, kOut);
      std::vector<double> above(below.size() / kBlock);
      for (std::size_t k = 0; k < above.size(); ++k) above[k] = smallest_of(below, k);
      levels_.push_back(std::move(above));
    }
  }

  [[nodiscard]] double value() const { return levels_.back().empty() ? kOut : levels_.back()[0]; }
  [[nodiscard]] Index place() const {
    std::size_t place = 0;
    for (std::size_t level = levels_.size() - 1; level-- > 0;) {
      const std::vector<double>& numbers = levels_[level];
      const double wanted = levels_[level + 1][place];
      place *= kBlock;
      while (numbers[place] != wanted) ++place;
    }
    return static_cast<Index>(place);
  }
  void set(std::size_t place, double number) {
    double old = std::exchange(levels_[0][place], number);
    for (std::size_t level = 1; level < levels_.size(); ++level) {
      place /= kBlock;
      double& above = levels_[level][place];
      if (number >= above && old > above) return;
      number = number < above ? number : smallest_of(levels_[level - 1], place);
      old = std::exchange(above, number);
    }
  }

 private:
  static constexpr std::size_t kBlock = 32;
  static double smallest_of(const std::vector<double>& numbers, std::size_t block) {
    return *std::min_element(numbers.begin() + static_cast<std::ptrdiff_t>(block * kBlock),
                             numbers.begin() + static_cast<std::ptrdiff_t>((block + 1) * kBlock));
  }
  std::vector<std::vector<double>> levels_;
};

}  // namespace poise::exact
