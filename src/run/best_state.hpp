/// The best recorded draw of a group of chains: its value, where it is, and its state.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <poise/types.hpp>

namespace poise {

/// Of equal values the earliest draw counts, then the first chain: the answer depends neither on how chains are grouped
/// nor on the order in which groups are looked at.
struct BestState {
  bool any = false;
  double value = 0.0;
  std::uint64_t draw = 0;
  std::uint64_t chain = 0;
  std::vector<Value> levels;  ///< empty where a GPU recorded many draws at once without their states

  [[nodiscard]] bool is_better(double other, bool maximise) const {
    return !any || (maximise ? other > value : other < value) || (std::isnan(value) && !std::isnan(other));
  }
  /// Whether `other` is the better of the two.
  [[nodiscard]] bool is_behind(const BestState& other, bool maximise) const {
    if (!other.any) return false;
    if (is_better(other.value, maximise)) return true;
    const bool same = value == other.value || (std::isnan(value) && std::isnan(other.value));
    return same && (other.draw != draw ? other.draw < draw : other.chain < chain);
  }

  template <class A>
  void archive(A& archive) {
    archive(any, value, draw, chain, levels);
  }
};

}  // namespace poise
