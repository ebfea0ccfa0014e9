/// Search by assigning one variable after another and propagating each time, with a way back.
#pragma once

#include <cstddef>
#include <vector>

#include "models/network/support_propagation.hpp"

namespace poise::support {

/// Maintained arc consistency (Sabin and Freuder 1994): where the levels of some variables decide those of others, as
/// in parities and circuits, propagation after each assignment leaves few wrong choices. What led to dead ends is
/// remembered from one search to the next.
class Backtracking {
 public:
  enum class Outcome { found, impossible, gave_up };

  Backtracking(const Constraints& constraints, const Domains& domains, Effort& effort);

  /// Looks for a state until the turn is over, preferring the levels of x, and writes it to x.
  Outcome search(std::vector<Value>& x, Rng& rng);

 private:
  struct Decision {
    Index variable;
    Index level;
    std::size_t changes;  ///< before it
  };

  // Both give kFree when there is none.
  [[nodiscard]] Index choose_variable(Rng& rng) const;
  [[nodiscard]] Index neighbour(std::size_t count) const;
  Propagation::Outcome assign(Decision decision);
  Propagation::Outcome refute(Decision decision);
  Propagation::Outcome propagate();
  void undo(std::size_t changes);
  void refile(Index i);

  const Constraints& constraints_;
  Effort& effort_;
  Propagation propagation_;
  std::vector<std::vector<Index>> by_count_;  // variables of some constraint, by how many levels they have left
  std::vector<Index> filed_;                  // under which count
  std::vector<Index> place_;                  // where there
  std::vector<std::uint32_t> weight_;         // of a variable: dead ends at its constraints
  Index last_conflict_ = Network::kFree;
};

}  // namespace poise::support
