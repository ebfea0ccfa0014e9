/// Plans: the search for an order of elimination, and the tree of cliques that an order leads to.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <poise/network/junction_tree.hpp>
#include <poise/streams.hpp>

#include "elimination_order.hpp"
#include "junction_tree_buckets.hpp"

namespace poise {

namespace {

using exact::Effort;
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

EliminationPlan plan_from(const Network& network, const Graph& graph, const Order& order) {
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

/// Less memory where there may not be enough of it; less work where there is.
bool better(const EliminationPlan& a, const EliminationPlan& b) {
  constexpr double plenty = 1073741824.0;
  const double excess_a = std::max(a.bytes, plenty);
  const double excess_b = std::max(b.bytes, plenty);
  return excess_a != excess_b ? excess_a < excess_b : a.operations < b.operations;
}

}  // namespace

EliminationPlan plan_elimination(const Network& network, double seconds) {
  const auto started = std::chrono::steady_clock::now();
  const auto late = [&] {
    return seconds <= 0.0 ||
           std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count() > seconds;
  };
  // A look at an edge takes a few nanoseconds, about as long as what inference does for one entry: planning shall not
  // take much longer than what it plans. A few trials there are in any case, unless some variable has so many
  // neighbours that looking at them takes too long.
  constexpr double looks_per_entry = 2.0;
  constexpr double looks_per_edge = 300.0;
  constexpr double most_looks = 6e8;
  // Where every order gives up, trying on is not worth as much.
  constexpr double most_looks_in_vain = 1e8;
  constexpr std::uint64_t most_trials_in_vain = 64;
  // An order that takes far longer is not worth the memory that it saves.
  constexpr double more_entries = 1.5;

  const Graph graph = exact::graph_of(network);
  Order order = exact::order_by_table(graph);
  EliminationPlan best;
  std::vector<Index> best_vertices;
  double fewest = 4.0 * exact::kLargestTable;
  const auto consider = [&] {
    EliminationPlan plan = plan_from(network, graph, order);
    fewest = std::min(fewest, order.entries);
    if (!best_vertices.empty() && !better(plan, best)) return;
    best = std::move(plan);
    best_vertices = std::move(order.vertices);
  };
  if (order.complete) {
    consider();
  } else {
    best.complete = false;
    best.width = order.width;
    best.largest_clique = best.entries = best.operations = exact::kLargestTable;
    best.bytes = sizeof(double) * exact::kLargestTable;
  }
  Rng rng = make_rng(exact::kOrderSeed, Stream::elimination_prefix);
  Effort effort;
  const double least_looks = std::min(most_looks, looks_per_edge * static_cast<double>(graph.neighbours.size()));
  const std::uint64_t beside = 1000 + graph.size() + network.num_factors();  // what a trial costs beside looks at edges
  for (std::uint64_t trial = 0; best.width > 1; ++trial) {
    const bool in_vain = best_vertices.empty();
    const double most = in_vain ? most_looks_in_vain : std::min(most_looks, looks_per_entry * fewest + least_looks);
    effort.most = static_cast<std::uint64_t>(most);
    effort.looks += beside;
    if (effort.spent() || late() || (in_vain && trial == most_trials_in_vain)) break;
    exact::FillOptions options;
    options.weight = trial % 2 == 0 ? exact::EdgeWeight::one : exact::EdgeWeight::levels;
    options.second_choice = trial < 2 ? 0.0 : trial % 4 < 2 ? 0.3 : 0.1;
    options.trial = trial;
    options.most_entries = more_entries * fewest;
    // Half of the trials go the best way so far for a while and then a way of their own.
    if (trial % 8 >= 4) {
      const auto length = static_cast<std::size_t>(rng.uniform() * static_cast<double>(best_vertices.size()));
      options.prefix = std::span<const Index>(best_vertices).first(length);
    }
    order = exact::order_by_fill(graph, options, effort);
    if (order.complete) consider();
  }
  return best;
}

}  // namespace poise
