/// Constraint propagation: factors that contain zeros, and the levels that are still possible, with undo.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/network.hpp>
#include "models/network/support.hpp"

namespace poise::support {

/// Uniform on 0 .. n-1.
inline std::size_t random_below(Rng& rng, std::size_t n) {
  return static_cast<std::size_t>(rng.uniform() * static_cast<double>(n));
}

/// Only factors with a zero can rule a state out; the searches never look at the others. The network must outlive this.
class Constraints {
 public:
  struct Member {
    Index variable;
    std::size_t stride;  ///< in the table, for a change of the variable by one level
  };
  struct Use {
    Index constraint;
    std::size_t stride;
  };

  explicit Constraints(const Network& network) : use_start_(network.num_variables() + 1, 0) {
    std::vector<std::size_t> zeros;  // in `values`, found once however many factors share a table
    for (std::size_t k = 0; k < network.values.size(); ++k) {
      if (!(network.values[k] > 0.0)) zeros.push_back(k);
    }
    for (std::size_t f = 0; f < network.num_factors(); ++f) {
      const std::span<const double> table = network.table(f);
      const auto zero = std::lower_bound(zeros.begin(), zeros.end(), network.table_start[f]);
      if (zero == zeros.end() || *zero >= network.table_start[f] + table.size()) continue;
      entries_ += table.size();
      factors_.push_back(f);
      tables_.push_back(table.data());
      const std::span<const Index> scope = network.scope(f);
      std::size_t stride = 1;
      for (std::size_t k = scope.size(); k-- > 0;) {
        members_.push_back({scope[k], stride});
        stride *= network.cardinalities[scope[k]];
        ++use_start_[scope[k] + 1];
      }
      member_start_.push_back(members_.size());
    }
    for (std::size_t i = 0; i + 1 < use_start_.size(); ++i) use_start_[i + 1] += use_start_[i];
    uses_.resize(members_.size());
    std::vector<std::size_t> next(use_start_.begin(), use_start_.end() - 1);
    for (Index c = 0; c < size(); ++c) {
      for (const Member& member : members(c)) uses_[next[member.variable]++] = {c, member.stride};
    }
  }

  /// How many there are.
  [[nodiscard]] Index size() const { return static_cast<Index>(factors_.size()); }
  /// Scopes and tables of all of them together, in numbers.
  [[nodiscard]] std::uint64_t memberships() const { return members_.size(); }
  [[nodiscard]] std::uint64_t entries() const { return entries_; }
  /// The number of the factor in the network.
  [[nodiscard]] std::size_t factor(Index c) const { return factors_[c]; }
  [[nodiscard]] std::span<const Member> members(Index c) const {
    return {members_.data() + member_start_[c], member_start_[c + 1] - member_start_[c]};
  }
  [[nodiscard]] std::span<const Use> uses(Index variable) const {
    return {uses_.data() + use_start_[variable], use_start_[variable + 1] - use_start_[variable]};
  }
  [[nodiscard]] bool positive(Index c, std::size_t place) const { return tables_[c][place] > 0.0; }
  [[nodiscard]] std::size_t place(Index c, std::span<const Value> x) const {
    std::size_t place = 0;
    for (const Member& member : members(c)) place += member.stride * x[member.variable];
    return place;
  }

 private:
  std::uint64_t entries_ = 0;
  std::vector<std::size_t> factors_;
  std::vector<const double*> tables_;
  std::vector<std::size_t> member_start_ = {0};
  std::vector<Member> members_;
  std::vector<std::size_t> use_start_;
  std::vector<Use> uses_;
};

/// What the searches have cost and may cost. Changes are what users count; looks at table entries are what takes time:
/// a variable of very many factors, or a very large table, makes one change cost millions of them.
struct Effort {
  std::uint64_t changes = 0;
  std::uint64_t looks = 0;
  std::uint64_t most_changes = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t most_looks = 2'000'000'000;
  std::uint64_t turn_end = most_looks;  ///< looks after which it is the other search's turn
  const std::atomic<bool>* stop = nullptr;

  [[nodiscard]] bool stopped() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
  [[nodiscard]] bool spent() const { return changes >= most_changes || looks >= most_looks || stopped(); }
  [[nodiscard]] bool turn_over() const { return looks >= turn_end || spent(); }
};

/// Generalised arc consistency by a queue of constraints (Mackworth's AC-3). The levels of a variable are a sparse set:
/// those that stay come first, so the one removed last is the first behind them and going back is setting the count.
class Propagation {
 public:
  enum class Outcome { consistent, impossible, gave_up };
  struct Change {
    Index variable;
    Index count;  ///< before the change
  };

  Propagation(const Constraints& constraints, const Domains& domains, Effort& effort)
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

  [[nodiscard]] Index count(Index i) const { return count_[i]; }
  [[nodiscard]] Index level(Index i, Index number) const { return levels_[start_[i] + number]; }
  [[nodiscard]] bool allows(Index i, Index level) const { return position_[start_[i] + level] < count_[i]; }
  /// Every change since the beginning that has not been undone; a variable may be there more than once.
  [[nodiscard]] std::span<const Change> changes() const { return changes_; }
  /// The constraint that left nothing of a variable, after `impossible`.
  [[nodiscard]] Index culprit() const { return culprit_; }

  void remove(Index i, Index level) {
    changes_.push_back({i, count_[i]});
    const std::size_t here = start_[i] + position_[start_[i] + level];
    const std::size_t last = start_[i] + --count_[i];
    std::swap(position_[start_[i] + level], position_[start_[i] + levels_[last]]);
    std::swap(levels_[here], levels_[last]);
  }

  void assign(Index i, Index level) {
    changes_.push_back({i, count_[i]});
    const std::size_t here = start_[i] + position_[start_[i] + level];
    std::swap(position_[start_[i] + level], position_[start_[i] + levels_[start_[i]]]);
    std::swap(levels_[here], levels_[start_[i]]);
    count_[i] = 1;
  }

  /// Takes the last change back and gives its variable.
  Index undo() {
    const auto [variable, count] = changes_.back();
    changes_.pop_back();
    count_[variable] = count;
    return variable;
  }

  /// Has every constraint looked at by the next `propagate`, or those of a variable.
  void enqueue_all() {
    for (Index c = 0; c < constraints_.size(); ++c) enqueue(c);
  }

  void enqueue_uses(Index i) {
    for (const Constraints::Use& use : constraints_.uses(i)) enqueue(use.constraint);
  }

  /// Empties the queue. Nothing is left of a variable: `impossible`. Turn over: `gave_up`, and what went was right to
  /// go.
  Outcome propagate() {
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

 private:
  void enqueue(Index c) {
    if (queued_[c]) return;
    queued_[c] = 1;
    queue_.push_back(c);
  }

  /// Walks through the combinations of levels that stay, one member's level fixed, until an entry is positive.
  [[nodiscard]] bool supported(Index c, std::size_t fixed, Index level) {
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
  Outcome revise(Index c) {
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
