/// Data structures of greedy elimination: a set of edges, and the smallest of many changing numbers.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <poise/types.hpp>

namespace poise::exact {

/// A set of undirected edges: open addressing, at most half full.
class EdgeSet {
 public:
  explicit EdgeSet(std::size_t edges) : slots_(std::bit_ceil(4 * edges + 16), kNone) {}

  [[nodiscard]] bool contains(Index a, Index b) const { return slots_[place(key_of(a, b))] != kNone; }

  /// False where it was there already.
  bool insert(Index a, Index b) {
    const std::uint64_t key = key_of(a, b);
    const std::size_t slot = place(key);
    if (slots_[slot] == key) return false;
    slots_[slot] = key;
    if (2 * ++size_ > slots_.size()) grow();
    return true;
  }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  [[nodiscard]] static std::uint64_t key_of(Index a, Index b) {
    return std::uint64_t{std::min(a, b)} << 32 | std::max(a, b);
  }
  [[nodiscard]] std::size_t place(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::uint64_t hash = key * 0x9E3779B97F4A7C15;
    std::size_t slot = (hash ^ hash >> 32) & mask;
    while (slots_[slot] != kNone && slots_[slot] != key) slot = (slot + 1) & mask;
    return slot;
  }
  void grow() {
    std::vector<std::uint64_t> old(2 * slots_.size(), kNone);
    old.swap(slots_);
    for (const std::uint64_t key : old) {
      if (key != kNone) slots_[place(key)] = key;
    }
  }

  std::vector<std::uint64_t> slots_;
  std::size_t size_ = 0;
};

/// The smallest of many numbers while they change: a tree in which each number is the smallest of kFanOut below it.
class Smallest {
 public:
  static constexpr double kOut = std::numeric_limits<double>::infinity();

  explicit Smallest(std::vector<double> numbers) {
    levels_.push_back(std::move(numbers));
    while (levels_.back().size() > 1) {
      std::vector<double>& below = levels_.back();
      below.resize((below.size() + kFanOut - 1) / kFanOut * kFanOut, kOut);
      std::vector<double> above(below.size() / kFanOut);
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
      place *= kFanOut;
      while (numbers[place] != wanted) ++place;
    }
    return static_cast<Index>(place);
  }
  void set(std::size_t place, double number) {
    double old = std::exchange(levels_[0][place], number);
    for (std::size_t level = 1; level < levels_.size(); ++level) {
      place /= kFanOut;
      double& above = levels_[level][place];
      if (number >= above && old > above) return;
      number = number < above ? number : smallest_of(levels_[level - 1], place);
      old = std::exchange(above, number);
    }
  }

 private:
  static constexpr std::size_t kFanOut = 32;
  static double smallest_of(const std::vector<double>& numbers, std::size_t above) {
    return *std::min_element(numbers.begin() + static_cast<std::ptrdiff_t>(above * kFanOut),
                             numbers.begin() + static_cast<std::ptrdiff_t>((above + 1) * kFanOut));
  }
  std::vector<std::vector<double>> levels_;
};

}  // namespace poise::exact
