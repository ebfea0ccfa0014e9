/// Exact maximisation over part of the variables, the others staying where they are.
#pragma once

#include <cstddef>
#include <limits>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include "exact/junction_tree_tables.hpp"
#include "inference/network_search/log_network.hpp"

namespace poise::network_search {

/// A variable of a part and the levels it may take: first, first + step, ... (`levels` of them).
struct Choice {
  Index variable;
  Index levels;
  std::ptrdiff_t first = 0;
  std::ptrdiff_t step = 1;
};

struct PartLimits {
  double largest = 1024.0;  ///< entries of a table
  double entries = 4e6;     ///< of all tables
};

/// An order in which variables of a part are eliminated within limits. Wherever no variable is left whose table is
/// small enough, one of those that are joined to most others keeps its level. The rest is chance, so that parts differ
/// from call to call.
class PartOrder {
 public:
  explicit PartOrder(const LogNetwork& network);

  void find(std::span<const Choice> part, const PartLimits& limits, Rng& rng);

  [[nodiscard]] std::size_t size() const { return vertices_.size(); }
  [[nodiscard]] Index variable(std::size_t place) const { return vertices_[place]; }
  /// Neighbours that are eliminated later, in that order.
  [[nodiscard]] std::span<const Index> later(std::size_t place) const {
    return {later_.data() + start_[place], start_[place + 1] - start_[place]};
  }
  /// The place of a variable in the order; kNone where it keeps its level.
  [[nodiscard]] Index place_of(Index i) const { return place_[i]; }
  /// What `find` did, in looks at edges.
  [[nodiscard]] double looks() const { return looks_; }

  static constexpr Index kNone = Network::kFree;

 private:
  struct Scored {
    double score;
    Index vertex;
    std::uint32_t version;
    friend bool operator<(const Scored& a, const Scored& b) {
      return a.score != b.score ? a.score > b.score : a.vertex > b.vertex;
    }
  };
  void put(Index v);
  void leave(Index v);
  void eliminate(Index v);
  void fix_one(Rng& rng);

  const LogNetwork& network_;
  std::vector<std::vector<Index>> beside_;
  std::vector<double> log_levels_, log_table_, noise_;
  std::vector<std::uint32_t> version_;
  std::vector<std::uint64_t> mark_;
  std::uint64_t stamp_ = 0;
  std::vector<Index> alive_, alive_at_;
  std::priority_queue<Scored> queue_;
  std::vector<Index> vertices_, later_, place_;
  std::vector<std::size_t> start_;
  double looks_ = 0.0;
};

/// Bucket elimination of a part by maximum.
class Part {
 public:
  explicit Part(const LogNetwork& network);

  /// Puts variables of the part at the best of their choices, given all others, one of equal ones by chance. The levels
  /// that `x` has must be among the choices, so it never gets worse. Gives the effort, in table entries.
  double maximise(std::span<const Choice> part, const PartLimits& limits, std::span<Value> x, Rng& rng);

 private:
  /// A factor or a message that goes into a bucket.
  struct Entry {
    std::size_t message;  ///< the bucket that sends it; kFactor: a factor
    const double* table;
    std::size_t digits;  ///< where they start
  };
  static constexpr std::size_t kFactor = std::numeric_limits<std::size_t>::max();

  double collect(std::span<const Value> x);
  void gather(std::size_t place, std::span<const Value> x);
  void read_back(std::span<Value> x, Rng& rng);

  const LogNetwork& network_;
  PartOrder order_;
  std::vector<Choice> choice_;        ///< by variable, of those in the part
  std::vector<std::uint64_t> taken_;  ///< of a factor: the call that put it into a bucket last
  std::uint64_t call_ = 0;
  std::vector<Index> member_;  ///< of a variable, in the bucket at hand
  std::vector<Entry> entries_;
  std::vector<std::size_t> entry_start_;  ///< buckets + 1
  std::vector<exact::Digit> digits_;
  std::vector<std::size_t> message_start_;
  std::vector<double> messages_;
  std::vector<Index> first_child_, next_child_;  ///< buckets by the one that they send their message to
  std::vector<Index> levels_;
  std::vector<exact::Source> sources_;
  exact::Pass pass_;
  std::vector<double> values_;
};

}  // namespace poise::network_search
