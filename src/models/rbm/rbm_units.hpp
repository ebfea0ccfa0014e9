/// Which units of one layer of an RBM are on, as bits and as a list.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <poise/types.hpp>

namespace poise {

class RbmUnits {
 public:
  explicit RbmUnits(Index units) : units_(units), bits_((units + std::size_t{63}) / 64), list_(units + kAtOnce) {}

  [[nodiscard]] std::span<std::uint64_t> bits() { return bits_; }
  [[nodiscard]] std::span<const std::uint64_t> bits() const { return bits_; }

  void take(std::span<const Value> levels);
  void give(std::span<Value> levels) const;

  /// Lists the units that are on, or those that are off where these are fewer. To be called when bits have changed.
  void list();
  [[nodiscard]] std::span<const Index> listed() const { return {list_.data(), count_}; }
  [[nodiscard]] bool lists_off() const { return lists_off_; }

 private:
  static constexpr std::size_t kAtOnce = 8;  // are written, and as many of them count as there are

  Index units_;
  std::vector<std::uint64_t> bits_;
  std::vector<Index> list_;
  std::size_t count_ = 0;
  bool lists_off_ = false;
};

/// Calls visit(unit) for every bit that is set, in increasing order.
template <class Visit>
void for_each_unit(std::span<const std::uint64_t> bits, Visit&& visit) {
  for (std::size_t word = 0; word < bits.size(); ++word) {
    for (std::uint64_t left = bits[word]; left != 0; left &= left - 1) {
      visit(static_cast<Index>(64 * word + static_cast<unsigned>(__builtin_ctzll(left))));
    }
  }
}

}  // namespace poise
