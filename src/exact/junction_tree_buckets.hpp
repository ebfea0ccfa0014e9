/// How a junction tree is worked through: what is summed out when, where each factor goes, and what it all takes.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "exact/junction_tree.hpp"

namespace poise::exact {

/// One step of collecting: tables that meet are multiplied, some variables are summed out, and the rest is the message
/// to the parent.
///
/// A clique becomes one bucket, or a chain of them where it eliminates many variables, so that a draw, which goes
/// through all combinations of the variables summed out, stays cheap. The variables of a bucket are in the order of
/// elimination, the last changes fastest: first those that are summed out, then those of the message. As the order is
/// the same in all tables, what goes from a message into a row of its parent lies together.
struct Bucket {
  Index clique;         ///< in the plan
  Index first;          ///< place of its first variable in the clique; it has all from there on
  Index summed;         ///< variables that are summed out
  Index in_row;         ///< last variables, all of the message, whose combinations make a row
  Index parent;         ///< its own number where it is a root
  std::size_t sources;  ///< factors and messages that meet
  double groups;        ///< combinations of the variables summed out
  double kept;          ///< combinations of the variables of the message
  double reads;         ///< tables that are read for every entry

  /// Entries visited, once for every table read, in both passes.
  [[nodiscard]] double operations() const { return 2.0 * groups * kept * (reads + 1.0); }
};

/// Entries of a bucket whose weights are kept for draws, if it has no more, and of all buckets together: 32 MiB, beyond
/// which a look into memory takes as long as to make the weights anew.
constexpr double kMostKept = 65536.0;
constexpr double kMostWeights = 4194304.0;

struct Buckets {
  static constexpr Index kNone = std::numeric_limits<Index>::max();

  std::vector<Bucket> all;         ///< children before parents
  std::vector<Index> of_variable;  ///< that sums it out; kNone for those in no clique
  std::vector<Index> of_factor;    ///< that it is multiplied into; kNone for a constant
  std::vector<Index> handing_out;  ///< parents before children, in an order that keeps few probabilities in memory
  double bytes = 0.0;
  double workspace = 0.0;  ///< of them, those that every thread needs
  double operations = 0.0;
  double draw_operations = 0.0;
  double handed_out = 0.0;               ///< most entries of probabilities that one thread has in memory
  std::vector<double> handed_out_below;  ///< the same within the subtree of each bucket

  /// Outer variables of a large bucket, by their places in it, whose levels tell its chunks apart; none where it is
  /// small.
  [[nodiscard]] std::span<const Index> chunked(Index b) const {
    if (chunk_start_.empty()) return {};
    return {chunk_members_.data() + chunk_start_[b], chunk_start_[b + 1] - chunk_start_[b]};
  }

  Buckets(const Network& network, const EliminationPlan& plan);

 private:
  void split_cliques(const Network& network, const EliminationPlan& plan, const std::vector<std::size_t>& attached);
  void link(const EliminationPlan& plan, const std::vector<Index>& position);
  void count_reads(const Network& network, const EliminationPlan& plan, const std::vector<Index>& position);
  void order_handing_out();
  void cut_into_chunks(const Network& network, const EliminationPlan& plan, const std::vector<Index>& position);
  void add_up(const Network& network, const EliminationPlan& plan);

  std::vector<std::size_t> chunk_start_;
  std::vector<Index> chunk_members_;
  double apart_ = 0.0;  ///< most entries that chunks of a bucket sum apart
};

}  // namespace poise::exact
