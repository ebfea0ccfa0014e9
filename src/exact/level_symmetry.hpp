/// Levels that can be exchanged in all variables at once, as in a Potts model without field.
#pragma once

#include <span>
#include <vector>

#include <poise/network.hpp>

namespace poise {

/// Which levels a network does not tell apart. It looks at whole networks only: a component by itself may have more of
/// them.
class LevelSymmetry {
 public:
  explicit LevelSymmetry(const Network& network);

  /// Into how many states exchanges turn a state, at most; 1 where no two levels are alike.
  [[nodiscard]] double copies() const;
  /// Of all states that exchanges lead to, the one in which levels that are alike first appear in ascending order.
  void normalise(std::span<Index> levels) const;

 private:
  std::vector<Index> class_of_;  ///< of each level, the smallest level that it is alike to
};

}  // namespace poise
