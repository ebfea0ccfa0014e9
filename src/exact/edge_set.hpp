/// A set of undirected edges, for the graphs that elimination changes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <poise/types.hpp>

namespace poise::exact {

/// Open addressing, at most half full.
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

}  // namespace poise::exact
