/// Search by changing one variable at a time in a state that violates some constraints.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "models/network/support.hpp"

#include "models/network/support_constraints.hpp"

namespace poise::support {

/// Weighted repair (the breakout method of Morris 1993, one constraint at a time): a violated constraint is picked at
/// random and that variable of it changed which leaves the least weight of violated constraints; where no change makes
/// it less, the constraint gains weight, which fills local minima up.
class Breakout {
 public:
  Breakout(const Constraints& constraints, const Domains& domains, Effort& effort);

  /// Starts from x, whose levels `domains` must allow, and leaves in x where it ended: when no constraint is violated,
  /// which gives true, or when the turn is over.
  bool search(std::vector<Value>& x, Rng& rng);

  /// The fewest constraints violated in any state so far, and up to three of them.
  [[nodiscard]] std::size_t fewest() const { return fewest_; }
  [[nodiscard]] std::span<const Index> examples() const {
    return {examples_.data(), std::min(fewest_, examples_.size())};
  }

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  struct Candidate {
    Move move = {};
    std::int64_t added = kNone;
  };

  void start_from(const std::vector<Value>& x);
  [[nodiscard]] std::int64_t added_weight(const std::vector<Value>& x, Move move) const;
  [[nodiscard]] Candidate best_change(const std::vector<Value>& x, Index c, Rng& rng);
  void change(std::vector<Value>& x, Move move);
  void set_violated(Index c, bool violated);
  void remember();

  const Constraints& constraints_;
  const Domains& domains_;
  Effort& effort_;
  std::vector<std::size_t> place_;     // in the table of each constraint
  std::vector<std::uint32_t> weight_;  // of each constraint
  std::vector<Index> violated_;
  std::vector<Index> number_;  // of a constraint in `violated_`, or kFree
  std::size_t fewest_;
  std::array<Index, 3> examples_ = {};
};

}  // namespace poise::support
