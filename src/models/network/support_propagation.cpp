/// Generalised arc consistency: a level goes when a constraint has no positive entry left with it.
#include "models/network/support_propagation.hpp"

#include <algorithm>
#include <utility>

namespace poise::support {

Propagation::Propagation(const Constraints& constraints, const Domains& domains, Effort& effort)
    : constraints_(constraints),
      effort_(effort),
      start_(domains.start),
      levels_(domains.allowed.size()),
      position_(domains.allowed.size()),
      count_(domains.count),
      queued_(constraints.size(), 0) {
  for (Index i = 0; i < count_.size(); ++i) {
    const auto levels = static_cast<Index>(start_[i + 1] - start_[i]);
    Index inside = 0, outside = count_[i];
    for (Index level = 0; level < levels; ++level) {
      const Index position = domains.allows(i, level) ? inside++ : outside++;
      levels_[start_[i] + position] = level;
      position_[start_[i] + level] = position;
    }
  }
  std::size_t longest = 0;
  for (Index c = 0; c < constraints.size(); ++c) longest = std::max(longest, constraints.members(c).size());
  digits_.resize(longest);
}

void Propagation::remove(Index i, Index level) {
  changes_.push_back({i, count_[i]});
  const std::size_t here = start_[i] + position_[start_[i] + level];
  const std::size_t last = start_[i] + --count_[i];
  std::swap(position_[start_[i] + level], position_[start_[i] + levels_[last]]);
  std::swap(levels_[here], levels_[last]);
}

void Propagation::assign(Index i, Index level) {
  changes_.push_back({i, count_[i]});
  const std::size_t here = start_[i] + position_[start_[i] + level];
  std::swap(position_[start_[i] + level], position_[start_[i] + levels_[start_[i]]]);
  std::swap(levels_[here], levels_[start_[i]]);
  count_[i] = 1;
}

Index Propagation::undo() {
  const auto [variable, count] = changes_.back();
  changes_.pop_back();
  count_[variable] = count;
  return variable;
}

void Propagation::enqueue(Index c) {
  if (queued_[c]) return;
  queued_[c] = 1;
  queue_.push_back(c);
}

void Propagation::enqueue_all() {
  for (Index c = 0; c < constraints_.size(); ++c) enqueue(c);
}

void Propagation::enqueue_uses(Index i) {
  for (const Constraints::Use& use : constraints_.uses(i)) enqueue(use.constraint);
}

/// Walks through the combinations of levels that stay, one member's level fixed, until an entry is positive.
bool Propagation::supported(Index c, std::size_t fixed, Index level) {
  const std::span<const Constraints::Member> members = constraints_.members(c);
  std::size_t place = members[fixed].stride * level;
  for (std::size_t k = 0; k < members.size(); ++k) {
    digits_[k] = 0;
    if (k != fixed) place += members[k].stride * this->level(members[k].variable, 0);
  }
  for (;;) {
    ++effort_.looks;
    if (constraints_.positive(c, place)) return true;
    std::size_t k = 0;
    for (; k < members.size(); ++k) {
      if (k == fixed) continue;
      const auto [variable, stride] = members[k];
      place -= stride * this->level(variable, digits_[k]);
      const bool more = ++digits_[k] < count_[variable];
      if (!more) digits_[k] = 0;
      place += stride * this->level(variable, digits_[k]);
      if (more) break;
    }
    if (k == members.size()) return false;
  }
}

/// A level that goes was in no positive entry, so none of the others had it as a support: one pass is enough.
Propagation::Outcome Propagation::revise(Index c) {
  const std::span<const Constraints::Member> members = constraints_.members(c);
  culprit_ = c;
  if (members.empty()) return constraints_.positive(c, 0) ? Outcome::consistent : Outcome::impossible;
  for (std::size_t k = 0; k < members.size(); ++k) {
    const Index i = members[k].variable;
    const Index before = count_[i];
    for (Index number = count_[i]; number-- > 0;) {  // downwards: removal moves only levels seen already
      if (supported(c, k, level(i, number))) continue;
      if (count_[i] == 1) return Outcome::impossible;
      remove(i, level(i, number));
    }
    if (count_[i] == before) continue;
    for (const Constraints::Use& use : constraints_.uses(i)) {
      if (use.constraint != c) enqueue(use.constraint);
    }
  }
  return Outcome::consistent;
}

Propagation::Outcome Propagation::propagate() {
  Outcome outcome = Outcome::consistent;
  while (head_ < queue_.size() && outcome == Outcome::consistent) {
    const Index c = queue_[head_++];
    queued_[c] = 0;
    outcome = effort_.turn_over() ? Outcome::gave_up : revise(c);
  }
  for (; head_ < queue_.size(); ++head_) queued_[queue_[head_]] = 0;
  queue_.clear();
  head_ = 0;
  return outcome;
}

}  // namespace poise::support
