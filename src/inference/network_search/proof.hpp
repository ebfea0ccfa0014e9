/// Upper bounds of a network that is too wide for a junction tree, and proofs that a state is the best one.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <poise/network.hpp>
#include "exact/collapse.hpp"
#include "exact/reduced_network.hpp"
#include "inference/network_search/branch_and_bound.hpp"

namespace poise::network_search {

struct ProofOptions {
  double operations = 2e8;                                   ///< table entries that one attempt may look at
  double seconds = std::numeric_limits<double>::infinity();  ///< expected time of the exact part of an attempt
  double memory = 1073741824.0;
  unsigned threads = 0;
  std::function<bool()> halt = nullptr;
};

/// What is known of the largest product: a bound, and which levels the best state cannot have. Costs are shifted
/// between factors, levels go that would put the bound below a state that is known, and where what is left has small
/// width, its best state is found exactly; else branch and bound may end.
class Proof {
 public:
  /// `network` has no observed variables.
  Proof(const Network& network, ProofOptions options);

  /// Natural logarithm: no state has a larger product. Infinite before the first attempt.
  [[nodiscard]] double bound() const { return bound_; }

  struct Outcome {
    bool proved = false;
    std::vector<Value> better;  ///< a state with a larger product, the best one; empty where there is none
  };
  /// Tries to prove that no product is larger than e^log_value, which some state has, or to find the best state.
  [[nodiscard]] Outcome attempt(double log_value);
  /// The same by branch and bound, which continues where it was when it had looked at so many table entries. A better
  /// state may be there before anything is proved.
  [[nodiscard]] Outcome search_tree(double log_value, double looks);

 private:
  /// A tree search on what was left at some time.
  struct Tree {
    Collapse collapse;  ///< of what is left
    BranchAndBound search;
    std::size_t reductions = 0;  ///< on the way from the network to what is left
    double constant;             ///< to be added to its logarithms
    double levels;
    Index variables;

    Tree(const Network& left, double memory);
  };

  [[nodiscard]] bool prune(double log_value);
  [[nodiscard]] std::optional<Outcome> solve(double log_value);
  [[nodiscard]] double log_value_of_rest(const std::vector<Index>& levels) const;
  [[nodiscard]] std::vector<Value> original(std::vector<Index> levels, std::size_t reductions) const;
  void lower_bound_of_rest(double log_value);
  void cut_into_buckets(const Network& shifted, double constant, double log_value);

  ProofOptions options_;
  Network left_;                         ///< without the levels that are out
  double constant_ = 0.0;                ///< to be added to its logarithms
  std::vector<ReducedNetwork> reduced_;  ///< the way from the network to what is left
  double bound_ = std::numeric_limits<double>::infinity();
  std::unique_ptr<Tree> tree_;
};

}  // namespace poise::network_search
