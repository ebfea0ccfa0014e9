/// The search for an order of elimination of one network: greedy orders first, then annealing for as long as it pays.
#pragma once

#include <vector>

#include "exact/junction_tree.hpp"
#include <poise/extend/base/rng.hpp>

#include "exact/elimination_order.hpp"

namespace poise::exact {

/// The tree of cliques that an order leads to.
[[nodiscard]] EliminationPlan plan_of(const Network& network, const Graph& graph, const Order& order);

struct SearchOptions {
  Effort::Clock::time_point deadline = Effort::Clock::time_point::max();
  /// Bytes that there are: needing more counts like as many times the work, which it takes in slices.
  double memory = 1073741824.0;
  double times = 1.0;  ///< how often the tree will be worked through
};

[[nodiscard]] SearchOptions search_options(const PlanOptions& options);

/// Operations, with those of the slices that too little memory will make of the tree.
[[nodiscard]] double cost(const EliminationPlan& plan, const SearchOptions& options);

struct FoundOrder {
  Order order;  ///< incomplete where none was found
  EliminationPlan plan;
};

/// The cheapest order that is found. Its tables may exceed `kLargestTable`.
[[nodiscard]] FoundOrder search_order(const Network& network, const Graph& graph, const SearchOptions& options);

/// The same, part by part where the network falls apart.
[[nodiscard]] FoundOrder search_parts(const Network& network, const Graph& graph, const SearchOptions& options);

/// The plan of a network where every order leads to too large a table.
[[nodiscard]] EliminationPlan given_up(Index width);

/// Random numbers of an annealing between two variables that are conditioned on, by how many there are.
[[nodiscard]] Rng annealing_rng(std::uint64_t number);

/// Annealing alone, which begins with `found`.
void improve_order(const Network& network, const Graph& graph, const SearchOptions& options, FoundOrder& found);

}  // namespace poise::exact
