/// Maintained arc consistency: which variable comes next, dead ends and the way back from them.
#include "models/network/support_backtracking.hpp"

#include <algorithm>
#include <span>

namespace poise::support {

namespace {

// A choice looks at this many variables, and at this many constraints of each: all would cost their number every time.
constexpr std::size_t kSample = 32;
constexpr std::size_t kUses = 8;

}  // namespace

Backtracking::Backtracking(const Constraints& constraints, const Domains& domains, Effort& effort)
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

void Backtracking::refile(Index i) {
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

Propagation::Outcome Backtracking::propagate() {
  const std::size_t before = propagation_.changes().size();
  const Propagation::Outcome outcome = propagation_.propagate();
  for (const Propagation::Change& change : propagation_.changes().subspan(before)) refile(change.variable);
  if (outcome == Propagation::Outcome::impossible) {
    for (const Constraints::Member& member : constraints_.members(propagation_.culprit())) ++weight_[member.variable];
  }
  return outcome;
}

void Backtracking::undo(std::size_t changes) {
  while (propagation_.changes().size() > changes) refile(propagation_.undo());
}

/// A variable with so many levels left that shares a constraint with one changed lately. Going on where one is keeps
/// the assigned part in one piece: two pieces of a chain that grow towards each other need not fit where they meet.
Index Backtracking::neighbour(std::size_t count) const {
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

/// The variable of the last dead end comes first until it has a level (Lecoutre et al. 2009): this finds the cause of a
/// dead end without keeping explanations. Then one with the fewest levels: a neighbour, unless others of a sample have
/// seen more dead ends.
Index Backtracking::choose_variable(Rng& rng) const {
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

Propagation::Outcome Backtracking::assign(Decision decision) {
  ++effort_.changes;
  propagation_.assign(decision.variable, decision.level);
  refile(decision.variable);
  propagation_.enqueue_uses(decision.variable);
  return propagate();
}

/// Back to before a decision that led to a dead end, without its level: it follows from the decisions before.
Propagation::Outcome Backtracking::refute(Decision decision) {
  ++effort_.changes;
  undo(decision.changes);
  last_conflict_ = decision.variable;
  propagation_.remove(decision.variable, decision.level);
  refile(decision.variable);
  propagation_.enqueue_uses(decision.variable);
  return propagate();
}

Backtracking::Outcome Backtracking::search(std::vector<Value>& x, Rng& rng) {
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

}  // namespace poise::support
