/// Levels that are still possible, kept consistent with every constraint, with a way back.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "models/network/support.hpp"

#include "models/network/support_constraints.hpp"

namespace poise::support {

/// Generalised arc consistency by a queue of constraints (Mackworth's AC-3). The levels of a variable are a sparse set:
/// those that stay come first, so the one removed last is the first behind them and going back is setting the count.
class Propagation {
 public:
  enum class Outcome { consistent, impossible, gave_up };
  struct Change {
    Index variable;
    Index count;  ///< before the change
  };

  Propagation(const Constraints& constraints, const Domains& domains, Effort& effort);

  [[nodiscard]] Index count(Index i) const { return count_[i]; }
  [[nodiscard]] Index level(Index i, Index number) const { return levels_[start_[i] + number]; }
  [[nodiscard]] bool allows(Index i, Index level) const { return position_[start_[i] + level] < count_[i]; }
  /// Every change since the beginning that has not been undone; a variable may be there more than once.
  [[nodiscard]] std::span<const Change> changes() const { return changes_; }
  /// The constraint that left nothing of a variable, after `impossible`.
  [[nodiscard]] Index culprit() const { return culprit_; }

  void remove(Index i, Index level);
  void assign(Index i, Index level);
  /// Takes the last change back and gives its variable.
  Index undo();

  /// Has every constraint looked at by the next `propagate`, or those of a variable.
  void enqueue_all();
  void enqueue_uses(Index i);
  /// Empties the queue. Nothing is left of a variable: `impossible`. Turn over: `gave_up`, and what went was right to
  /// go.
  Outcome propagate();

 private:
  void enqueue(Index c);
  [[nodiscard]] bool supported(Index c, std::size_t fixed, Index level);
  Outcome revise(Index c);

  const Constraints& constraints_;
  Effort& effort_;
  std::vector<std::size_t> start_;
  std::vector<Index> levels_;
  std::vector<Index> position_;
  std::vector<Index> count_;
  std::vector<Change> changes_;
  std::vector<Index> queue_;
  std::size_t head_ = 0;
  std::vector<char> queued_;
  std::vector<Index> digits_;  // of the combination that `supported` is at
  Index culprit_ = 0;
};

}  // namespace poise::support
