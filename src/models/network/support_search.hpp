/// Two searches for a state of positive probability: weighted repair, and backtracking with propagation.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "models/network/support.hpp"
#include "models/network/support_propagation.hpp"

namespace poise::support {

/// Weighted repair (the breakout method of Morris 1993, one constraint at a time): a violated constraint is picked at
/// random and that variable of it changed which leaves the least weight of violated constraints; where no change makes
/// it less, the constraint gains weight, which fills local minima up.
class Breakout {
 public:
  Breakout(const Constraints& constraints, const Domains& domains, Effort& effort)
      : constraints_(constraints),
        domains_(domains),
        effort_(effort),
        place_(constraints.size(), 0),
        weight_(constraints.size(), 1),
        number_(constraints.size(), Network::kFree),
        fewest_(std::numeric_limits<std::size_t>::max()) {}

  /// Starts from x, whose levels `domains` must allow, and leaves in x where it ended: when no constraint is violated,
  /// which gives true, or when the turn is over.
  bool search(std::vector<Value>& x, Rng& rng) {
    start_from(x);
    while (!violated_.empty() && !effort_.turn_over()) {
      const Index c = violated_[random_below(rng, violated_.size())];
      const Candidate best = best_change(x, c, rng);
      if (best.added == kNone) break;  // its variables have one level each: a zero that propagation did not get to
      if (best.added >= 0) ++weight_[c];
      change(x, best.move);
      note_best();
    }
    return violated_.empty();
  }

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

  void start_from(const std::vector<Value>& x) {
    effort_.looks += constraints_.size();
    for (Index c = 0; c < constraints_.size(); ++c) {
      place_[c] = constraints_.place(c, x);
      set_violated(c, !constraints_.positive(c, place_[c]));
    }
    note_best();
  }

  /// The weight of violated constraints after a change, less that before it.
  [[nodiscard]] std::int64_t added_weight(const std::vector<Value>& x, Move move) const {
    std::int64_t sum = 0;
    for (const auto [c, stride] : constraints_.uses(move.variable)) {
      const int before = number_[c] != Network::kFree ? 1 : 0;
      const int after = constraints_.positive(c, place_[c] + stride * move.value - stride * x[move.variable]) ? 0 : 1;
      sum += (after - before) * static_cast<std::int64_t>(weight_[c]);
    }
    return sum;
  }

  /// A change of one variable of a constraint that adds least weight; ties are broken at random.
  [[nodiscard]] Candidate best_change(const std::vector<Value>& x, Index c, Rng& rng) {
    Candidate best;
    std::size_t equal = 0;
    for (const Constraints::Member& member : constraints_.members(c)) {
      const Index i = member.variable;
      if (domains_.count[i] < 2) continue;
      const std::size_t levels = domains_.start[i + 1] - domains_.start[i];
      effort_.looks += (domains_.count[i] - 1) * constraints_.uses(i).size();
      for (Index level = 0; level < levels; ++level) {
        if (level == x[i] || !domains_.allows(i, level)) continue;
        const Move move{i, static_cast<Value>(level)};
        const std::int64_t added = added_weight(x, move);
        if (added < best.added) equal = 0;
        if (added <= best.added && random_below(rng, ++equal) == 0) best = {move, added};
      }
    }
    return best;
  }

  void change(std::vector<Value>& x, Move move) {
    ++effort_.changes;
    for (const auto [c, stride] : constraints_.uses(move.variable)) {
      place_[c] += stride * move.value - stride * x[move.variable];
      set_violated(c, !constraints_.positive(c, place_[c]));
    }
    x[move.variable] = move.value;
  }

  void set_violated(Index c, bool violated) {
    if (violated == (number_[c] != Network::kFree)) return;
    if (violated) {
      number_[c] = static_cast<Index>(violated_.size());
      violated_.push_back(c);
    } else {
      violated_[number_[c]] = violated_.back();
      number_[violated_.back()] = number_[c];
      violated_.pop_back();
      number_[c] = Network::kFree;
    }
  }

  void note_best() {
    if (violated_.size() >= fewest_) return;
    fewest_ = violated_.size();
    std::copy_n(violated_.begin(), examples().size(), examples_.begin());
  }

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

/// Maintained arc consistency (Sabin and Freuder 1994): where the levels of some variables decide those of others, as
/// in parities and circuits, propagation after each assignment leaves few wrong choices. What led to dead ends is
/// kept from one search to the next.
class Backtracking {
 public:
  enum class Outcome { found, impossible, gave_up };

  Backtracking(const Constraints& constraints, const Domains& domains, Effort& effort)
      : constraints_(constraints),
        effort_(effort),
        propagation_(constraints, domains, effort),
        filed_(domains.count),
        place_(domains.count.size(), 0),
        weight_(domains.count.size(), 0) {
    by_count_.resize(filed_.empty() ? 0 : *std::max_element(filed_.begin(), filed_.end()) + 1);
    for (Index i = 0; i < filed_.size(); ++i) {
      if (constraints.uses(i).empty()) continue;
      place_[i] = static_cast<Index>(by_count_[filed_[i]].size());
      by_count_[filed_[i]].push_back(i);
    }
  }

  /// Looks for a state until the turn is over, preferring the levels of x, and writes it to x.
  Outcome search(std::vector<Value>& x, Rng& rng) {
    std::vector<Decision> decisions;
    propagation_.enqueue_all();  // the turn before may have ended in the middle of a propagation
    Propagation::Outcome outcome = propagate();
    while (outcome != Propagation::Outcome::gave_up) {
      if (outcome == Propagation::Outcome::impossible) {
        if (decisions.empty()) return Outcome::impossible;
        const Decision wrong = decisions.back();
        decisions.pop_back();
        outcome = refute(wrong);
        continue;
      }
      const Index i = choose_variable(rng);
      if (i == Network::kFree) {
        for (Index k = 0; k < x.size(); ++k) {
          if (!constraints_.uses(k).empty()) x[k] = static_cast<Value>(propagation_.level(k, 0));
        }
        return Outcome::found;
      }
      const auto any = static_cast<Index>(random_below(rng, propagation_.count(i)));
      const Index level = propagation_.allows(i, x[i]) ? x[i] : propagation_.level(i, any);
      decisions.push_back({i, level, propagation_.changes().size()});
      outcome = assign(decisions.back());
    }
    if (!decisions.empty()) undo(decisions.front().changes);
    return Outcome::gave_up;
  }

 private:
  struct Decision {
    Index variable;
    Index level;
    std::size_t changes;  ///< before it
  };

  // A choice looks at this many variables, and at this many constraints of each: looking at all would cost too much.
  static constexpr std::size_t kSample = 32;
  static constexpr std::size_t kUses = 8;

  // Both give kFree when there is none.
  /// The variable of the last dead end comes first until it has a level (Lecoutre et al. 2009): this finds the cause of
  /// a dead end without keeping explanations. Then one with the fewest levels: a neighbour, unless others of a sample
  /// have seen more dead ends.
  [[nodiscard]] Index choose_variable(Rng& rng) const {
    if (last_conflict_ != Network::kFree && propagation_.count(last_conflict_) > 1) return last_conflict_;
    for (std::size_t count = 2; count < by_count_.size(); ++count) {
      const std::vector<Index>& variables = by_count_[count];
      if (variables.empty()) continue;
      Index best = neighbour(count);
      if (best == Network::kFree) best = variables[random_below(rng, variables.size())];
      for (std::size_t k = 1; k < std::min(kSample, variables.size()); ++k) {
        const Index i = variables[random_below(rng, variables.size())];
        if (weight_[i] > weight_[best]) best = i;
      }
      return best;
    }
    return Network::kFree;
  }

  /// A variable with so many levels left that shares a constraint with one changed lately. Continuing there
  /// keeps the assigned variables connected: two segments of a chain that grow towards each other need not fit.
  [[nodiscard]] Index neighbour(std::size_t count) const {
    const std::span<const Propagation::Change> changes = propagation_.changes();
    for (std::size_t back = 1; back <= std::min(kSample, changes.size()); ++back) {
      const std::span<const Constraints::Use> uses = constraints_.uses(changes[changes.size() - back].variable);
      for (const Constraints::Use& use : uses.first(std::min(kUses, uses.size()))) {
        for (const Constraints::Member& member : constraints_.members(use.constraint)) {
          if (propagation_.count(member.variable) == count) return member.variable;
        }
      }
    }
    return Network::kFree;
  }

  Propagation::Outcome assign(Decision decision) {
    ++effort_.changes;
    propagation_.assign(decision.variable, decision.level);
    refile(decision.variable);
    propagation_.enqueue_uses(decision.variable);
    return propagate();
  }

  /// Back to before a decision that led to a dead end, without its level: it follows from the decisions before.
  Propagation::Outcome refute(Decision decision) {
    ++effort_.changes;
    undo(decision.changes);
    last_conflict_ = decision.variable;
    propagation_.remove(decision.variable, decision.level);
    refile(decision.variable);
    propagation_.enqueue_uses(decision.variable);
    return propagate();
  }

  Propagation::Outcome propagate() {
    const std::size_t before = propagation_.changes().size();
    const Propagation::Outcome outcome = propagation_.propagate();
    for (const Propagation::Change& change : propagation_.changes().subspan(before)) refile(change.variable);
    if (outcome == Propagation::Outcome::impossible) {
      for (const Constraints::Member& member : constraints_.members(propagation_.culprit())) ++weight_[member.variable];
    }
    return outcome;
  }

  void undo(std::size_t changes) {
    while (propagation_.changes().size() > changes) refile(propagation_.undo());
  }

  void refile(Index i) {
    const Index count = propagation_.count(i);
    if (filed_[i] == count) return;
    std::vector<Index>& old = by_count_[filed_[i]];
    old[place_[i]] = old.back();
    place_[old.back()] = place_[i];
    old.pop_back();
    filed_[i] = count;
    place_[i] = static_cast<Index>(by_count_[count].size());
    by_count_[count].push_back(i);
  }

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
