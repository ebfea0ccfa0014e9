/// The factors of a network that contain a zero, and how much a search over them may cost.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <poise/network.hpp>
#include <poise/extend/base/rng.hpp>

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

  explicit Constraints(const Network& network);

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

}  // namespace poise::support
