/// Plans: the tree of cliques that an order of elimination leads to, and a network planned part by part.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "exact/junction_tree.hpp"

#include "exact/elimination_search.hpp"
#include "exact/elimination_tree.hpp"
#include "exact/junction_tree_buckets.hpp"

namespace poise {

namespace {

using exact::Graph;
using exact::Order;

/// Cliques of an order: the first variable with its later neighbours is one, and so on. A clique that is part of
/// another is part of one that it is the parent of, and exactly what that one leaves over (Blair and Peyton 1993), so
/// it is taken into it: its variable becomes another one that the lower clique eliminates.
struct Cliques {
  std::vector<Index> first, last;  ///< places of the first and last variable that each clique eliminates
  std::vector<Index> of;           ///< the clique that eliminates the variable at a place

  Cliques(const Order& order, const std::vector<Index>& parent) : of(order.vertices.size()) {
    constexpr Index none = std::numeric_limits<Index>::max();
    std::vector<Index> leaves_over(order.vertices.size(), none);  // a clique whose rest is the one that starts here
    for (Index place = 0; place < order.vertices.size(); ++place) {
      const bool new_one = leaves_over[place] == none;
      of[place] = new_one ? static_cast<Index>(first.size()) : leaves_over[place];
      if (new_one) {
        first.push_back(place);
        last.push_back(place);
      }
      last[of[place]] = place;
      const Index up = parent[place];
      if (up != place && order.later_of(place).size() == order.later_of(up).size() + 1) leaves_over[up] = of[place];
    }
  }
};

/// A part of a network without its numbers, which plans do not need.
struct Skeleton {
  Network network;
  Graph graph;

  Skeleton(const Network& whole, std::span<const Index> variables, std::span<const std::size_t> factors,
           std::vector<Index>& number) {
    for (const Index i : variables) {
      number[i] = network.num_variables();
      network.cardinalities.push_back(whole.cardinalities[i]);
    }
    for (const std::size_t f : factors) {
      for (const Index i : whole.scope(f)) {
        if (whole.levels(i) > 1) network.scopes.push_back(number[i]);
      }
      network.scope_start.push_back(network.scopes.size());
      network.table_start.push_back(0);
    }
    graph = exact::graph_of(network);
  }
};

/// The factors of each part of a network.
std::vector<std::vector<std::size_t>> factors_of(const Network& network, const std::vector<std::vector<Index>>& parts) {
  constexpr Index none = Network::kFree;
  std::vector<Index> part_of(network.num_variables(), none);
  for (Index p = 0; p < parts.size(); ++p) {
    for (const Index i : parts[p]) part_of[i] = p;
  }
  std::vector<std::vector<std::size_t>> factors(parts.size());
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    for (const Index i : network.scope(f)) {
      if (part_of[i] == none) continue;
      factors[part_of[i]].push_back(f);
      break;
    }
  }
  return factors;
}

}  // namespace

EliminationPlan exact::plan_of(const Network& network, const Graph& graph, const Order& order) {
  const auto n = static_cast<Index>(order.vertices.size());
  std::vector<Index> position(n);
  for (Index place = 0; place < n; ++place) position[order.vertices[place]] = place;
  std::vector<Index> parent(n);  // place of the first later neighbour
  for (Index place = 0; place < n; ++place) {
    parent[place] = n;
    for (const Index v : order.later_of(place)) parent[place] = std::min(parent[place], position[v]);
    if (parent[place] == n) parent[place] = place;
  }
  const Cliques cliques(order, parent);
  // By the last variable that a clique eliminates: what it leaves over is eliminated later, hence parents come later.
  std::vector<Index> by_last(cliques.first.size());
  std::iota(by_last.begin(), by_last.end(), Index{0});
  std::sort(by_last.begin(), by_last.end(), [&](Index a, Index b) { return cliques.last[a] < cliques.last[b]; });
  std::vector<Index> number(by_last.size());
  for (Index k = 0; k < by_last.size(); ++k) number[by_last[k]] = k;

  EliminationPlan plan;
  for (const Index v : order.vertices) plan.order.push_back(graph.variables[v]);
  const auto table = [&](const std::vector<Index>& variables) {
    return std::accumulate(variables.begin(), variables.end(), 1.0,
                           [&](double product, Index i) { return product * network.levels(i); });
  };
  for (const Index c : by_last) {
    std::vector<Index> places;
    for (const Index v : order.later_of(cliques.first[c])) places.push_back(position[v]);
    places.push_back(cliques.first[c]);
    std::sort(places.begin(), places.end());
    const std::size_t kept = order.later_of(cliques.last[c]).size();
    std::vector<Index> members;
    members.reserve(places.size());
    for (const Index place : places) members.push_back(plan.order[place]);
    const Index up = parent[cliques.last[c]];
    plan.parent.push_back(number[cliques.of[up]]);
    plan.separators.emplace_back(members.end() - static_cast<std::ptrdiff_t>(kept), members.end());
    plan.width = std::max(plan.width, static_cast<Index>(members.size() - 1));
    plan.largest_clique = std::max(plan.largest_clique, table(members));
    plan.entries += table(members) + (kept > 0 ? table(plan.separators.back()) : 0.0);
    plan.cliques.push_back(std::move(members));
  }
  const exact::Buckets buckets(network, plan);
  plan.bytes = buckets.bytes;
  plan.operations = buckets.operations;
  return plan;
}

/// Parts are independent, so the best order of each, one after another, is the best of all.
exact::FoundOrder exact::search_parts(const Network& network, const Graph& graph, const SearchOptions& options) {
  std::vector<std::vector<Index>> parts = parts_of(graph);
  if (parts.size() < 2) return search_order(network, graph, options);
  std::vector<Index> vertex(network.num_variables());
  for (Index v = 0; v < graph.size(); ++v) vertex[graph.variables[v]] = v;
  for (std::vector<Index>& part : parts) {
    for (Index& v : part) v = graph.variables[v];
  }
  const std::vector<std::vector<std::size_t>> factors = factors_of(network, parts);
  std::vector<Index> number(network.num_variables());
  FoundOrder all;
  all.order.complete = true;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::vector<Index> vertices = {0};
    if (parts[p].size() > 1) {
      const Skeleton skeleton(network, parts[p], factors[p], number);
      FoundOrder found = search_order(skeleton.network, skeleton.graph, options);
      all.plan.width = std::max(all.plan.width, found.plan.width);
      all.order.complete = all.order.complete && found.order.complete;
      vertices = std::move(found.order.vertices);
    }
    for (const Index v : vertices) all.order.vertices.push_back(vertex[parts[p][v]]);
  }
  if (!all.order.complete) return all;
  all.order = EliminationTree(graph, all.order.vertices).order();
  all.plan = plan_of(network, graph, all.order);
  return all;
}

EliminationPlan exact::given_up(Index width) {
  EliminationPlan plan;
  plan.complete = false;
  plan.width = width;
  plan.largest_clique = plan.entries = plan.operations = kLargestTable;
  plan.bytes = sizeof(double) * kLargestTable;
  return plan;
}

EliminationPlan plan_elimination(const Network& network, const PlanOptions& options) {
  const Graph graph = exact::graph_of(network);
  exact::FoundOrder found;
  if (options.seconds > 0.0) {
    found = exact::search_parts(network, graph, exact::search_options(options));
  } else {
    found.order = exact::order_by_table(graph);
    found.plan.width = found.order.width;
    if (found.order.complete) found.plan = exact::plan_of(network, graph, found.order);
  }
  const bool complete = found.order.complete && found.plan.largest_clique <= exact::kLargestTable * (1.0 + 1e-9);
  return complete ? std::move(found.plan) : exact::given_up(found.plan.width);
}

}  // namespace poise
