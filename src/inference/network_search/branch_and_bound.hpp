/// The proof that a state of a network is the best one, or a better state, by a tree search with bounds.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include <poise/network.hpp>
#include "inference/network_search/soft_costs.hpp"

namespace poise::network_search {

/// Hybrid best-first search (Allouche et al. 2015): the open node with the best bound is searched depth first for some
/// failures, then what is left open of it joins the other open nodes. How many failures that are follows from how much
/// of the work goes into finding the way back to open nodes. Each node moves costs until its bound settles.
class BranchAndBound {
 public:
  struct Limits {
    double looks = std::numeric_limits<double>::infinity();  ///< at table entries, in this call
    std::function<bool()> halt = nullptr;                    ///< looked at at every node
  };

  /// `network` has no observed variables and no empty scopes; it is not needed afterwards. Open nodes take `memory`
  /// bytes at most, about; beyond that the search is depth first.
  BranchAndBound(const Network& network, double memory);

  /// Only states with a larger product than e^log_value count from here on, also of those that were found. A difference
  /// within rounding is none.
  void look_above(double log_value);
  /// Searches on where the last call ended. True where nothing is open any more: `best` is then the best state, or no
  /// state counts.
  bool search(const Limits& limits);

  /// No state that counts has a larger logarithm.
  [[nodiscard]] double log_bound() const;
  /// The best state that counts and was found.
  [[nodiscard]] const std::optional<std::vector<Value>>& best() const { return best_; }
  [[nodiscard]] double looks() const { return costs_.looks(); }
  [[nodiscard]] std::uint64_t nodes() const { return nodes_; }

 private:
  static constexpr std::uint32_t kRoot = std::numeric_limits<std::uint32_t>::max();

  struct Decision {
    Index variable;
    Value level;
    bool is_it;  ///< the variable has this level; false: another one
  };
  struct Step {  ///< on the way to open nodes
    std::uint32_t parent;
    Decision decision;
  };
  struct Open {
    Cost bound;
    std::uint32_t step;
    std::uint32_t depth;
    std::uint64_t number;
    /// For a heap with the least bound, of these the deepest, of these the latest on top.
    friend bool operator<(const Open& a, const Open& b) {
      if (a.bound != b.bound) return a.bound > b.bound;
      return a.depth != b.depth ? a.depth < b.depth : a.number < b.number;
    }
  };
  struct Branch {  ///< of a depth-first search: a decision that is being searched, and its opposite is open
    Decision decision;
    Cost bound;
    std::size_t path;  ///< decisions before
  };

  bool enter(const Open& open);
  bool descend(const Limits& limits, double last_look);
  bool apply(const Decision& decision);
  bool is_solved();
  bool retreat();
  void leave_open();
  [[nodiscard]] Decision choose() const;

  SoftCosts costs_;
  std::size_t most_steps_;
  Cost limit_ = kNoLimit;
  std::optional<std::vector<Value>> best_;
  std::vector<Value> guess_;
  std::vector<Open> open_;
  std::vector<Step> steps_;
  std::vector<Decision> path_;
  std::vector<Branch> branches_;
  std::uint32_t entered_ = kRoot;  ///< the step of the node where the depth-first search began
  std::size_t entered_depth_ = 0;
  Cost entered_bound_ = 0;           ///< costs are shared out anew there, so its bound may come out lower than it was
  std::vector<double> weight_;       ///< of failures at a variable
  Index conflict_ = Network::kFree;  ///< the variable of the last decision that failed
  std::uint64_t failures_ = 0, most_failures_ = 1;
  std::uint64_t nodes_ = 0, revisited_ = 0, opened_ = 0;
};

}  // namespace poise::network_search
