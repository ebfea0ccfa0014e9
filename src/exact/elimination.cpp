/// Plans of elimination: the search for an order, component by component, and the tree of cliques that an order leads
/// to.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <poise/extend/base/rng.hpp>
#include "exact/elimination_order.hpp"
#include "exact/junction_tree_buckets.hpp"

namespace poise::exact {

namespace {

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

/// A component of a network without its tables, which plans do not need.
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
    graph = graph_of(network);
  }
};

/// The factors of each component of a network.
std::vector<std::vector<std::size_t>> factors_of(const Network& network,
                                                 const std::vector<std::vector<Index>>& components) {
  constexpr Index none = Network::kFree;
  std::vector<Index> component_of(network.num_variables(), none);
  for (Index p = 0; p < components.size(); ++p) {
    for (const Index i : components[p]) component_of[i] = p;
  }
  std::vector<std::vector<std::size_t>> factors(components.size());
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    for (const Index i : network.scope(f)) {
      if (component_of[i] == none) continue;
      factors[component_of[i]].push_back(f);
      break;
    }
  }
  return factors;
}

// Measured: a look at an edge takes as long as five operations of inference, give or take a factor of two.
constexpr double kOperationsPerLook = 5.0;

// Greedy orders: planning shall not take much longer than what it plans, and once it takes longer than a tenth of a
// second annealing is the better way, where it will be tried. A few trials there are in any case, unless some variable
// has so many neighbours that looking at them takes too long.
constexpr double kLooksPerEntry = 1.0;
constexpr double kLooksPerEdge = 300.0;
constexpr double kMostForEntries = 2e7;
constexpr double kMostLooks = 6e8;
// Where every order is given up, more trials are worth less.
constexpr double kMostLooksInVain = 1e8;
constexpr std::uint64_t kMostTrialsInVain = 64;
// An order that takes far longer is not worth the memory that it saves.
constexpr double kMoreEntries = 1.5;

// Annealing: rounds of twice the length each. A round shorter than some hundreds of sweeps does not cool slowly enough;
// a look at all rotations of a sweep takes some forty looks at edges each.
constexpr double kFewestLooks = 1e6;
constexpr double kFewestPerVertex = 12000.0;
constexpr std::array kTemperatures = {0.5, 0.35, 0.65};
constexpr double kMostAnnealing = 2e9;
constexpr double kMostAnnealingInVain = 4e8;
// A round is expected to save half the fraction that the last one has saved, and this much if it is the first; less
// with every round that has saved nothing.
constexpr double kFirstSaving = 0.2;
constexpr double kNothing = 0.01;

class Search {
 public:
  Search(const Network& network, const Graph& graph, const SearchOptions& options, FoundOrder& found)
      : network_(network), graph_(graph), options_(options), found_(found) {
    effort_.deadline = options.deadline;
  }

  void try_greedy_orders() {
    found_.order = order_by_table(graph_);
    if (found_.order.complete) {
      found_.plan = plan_of(network_, graph_, found_.order);
    } else {
      found_.plan.width = found_.order.width;
    }
    double fewest = found_.order.complete ? found_.order.entries : 4.0 * kLargestStart;
    Rng rng = make_rng(kOrderSeed, Stream::elimination_prefix);
    const double least = std::min(kMostLooks, kLooksPerEdge * static_cast<double>(graph_.neighbours.size()));
    const std::uint64_t beside = 1000 + graph_.size() + network_.num_factors();  // what a trial costs beside looks
    for (std::uint64_t trial = 0; !found_.order.complete || found_.plan.width > 1; ++trial) {
      const bool in_vain = !found_.order.complete;
      const double entries = std::min(kLooksPerEntry * fewest, first_round_pays() ? kMostForEntries : kMostLooks);
      const double worth = in_vain ? kMostLooksInVain : std::min(kMostLooks, entries + least);
      effort_.most = static_cast<std::uint64_t>(std::min(worth, options_.most_looks));
      effort_.looks += beside;
      if (effort_.spent() || effort_.late() || (in_vain && trial == kMostTrialsInVain)) break;
      FillOptions fill;
      fill.weight = trial % 2 == 0 ? EdgeWeight::one : EdgeWeight::levels;
      fill.second_choice = trial < 2 ? 0.0 : trial % 4 < 2 ? 0.3 : 0.1;
      fill.trial = trial;
      fill.most_entries = kMoreEntries * fewest;
      fill.largest_table = kLargestStart;
      // Half of the trials begin with a prefix of the best order so far.
      if (trial % 8 >= 4) {
        const auto length = static_cast<std::size_t>(rng.uniform() * static_cast<double>(found_.order.vertices.size()));
        if (!in_vain) fill.prefix = std::span<const Index>(found_.order.vertices).first(length);
      }
      Order order = order_by_fill(graph_, fill, effort_);
      if (!order.complete) continue;
      fewest = std::min(fewest, order.entries);
      consider(std::move(order));
    }
  }

  void anneal() {
    if (!found_.order.complete || found_.plan.width < 2) return;
    Rng rng = annealing_rng(0);
    const std::uint64_t start = effort_.looks;
    double looks = first_round();
    double saved = 2.0 * kFirstSaving;
    double failures = 0.0;
    for (std::size_t round = 0;; ++round, looks *= 2.0) {
      const double before = cost(found_.plan, options_);
      const double expected = failures == 0.0 ? saved / 2.0 : kFirstSaving / (1.0 + failures * failures);
      const double most = found_.plan.largest_clique > kLargestTable ? kMostAnnealingInVain : kMostAnnealing;
      if (!pays(looks, expected) || effort_.late()) break;
      if (static_cast<double>(effort_.looks - start) + looks > most) break;
      if (static_cast<double>(effort_.looks) + looks > options_.most_looks) break;
      EliminationTree tree(graph_, found_.order.vertices);
      tree.anneal({.first_temperature = kTemperatures[round % kTemperatures.size()],
                   .looks = static_cast<std::uint64_t>(looks)},
                  rng, effort_);
      consider(tree.order());
      saved = 1.0 - cost(found_.plan, options_) / before;
      failures = saved < kNothing ? failures + 1.0 : 0.0;
    }
  }

 private:
  void consider(Order order) {
    EliminationPlan plan = plan_of(network_, graph_, order);
    if (found_.order.complete && cost(plan, options_) >= cost(found_.plan, options_)) return;
    found_.plan = std::move(plan);
    found_.order = std::move(order);
  }

  [[nodiscard]] double first_round() const { return std::max(kFewestLooks, kFewestPerVertex * graph_.size()); }
  /// Whether so many looks cost less than a fraction of inference.
  [[nodiscard]] bool pays(double looks, double fraction) const {
    return looks * kOperationsPerLook <= fraction * cost(found_.plan, options_) * options_.times;
  }
  [[nodiscard]] bool first_round_pays() const { return found_.order.complete && pays(first_round(), kFirstSaving); }

  const Network& network_;
  const Graph& graph_;
  const SearchOptions& options_;
  FoundOrder& found_;
  Effort effort_;
};
}  // namespace

EliminationPlan plan_of(const Network& network, const Graph& graph, const Order& order) {
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
  const Buckets buckets(network, plan);
  plan.bytes = buckets.bytes;
  plan.operations = buckets.operations;
  plan.draw_operations = buckets.draw_operations;
  return plan;
}

/// Components are independent, so the best order of each, one after another, is the best of all.
FoundOrder search_components(const Network& network, const Graph& graph, const SearchOptions& options) {
  std::vector<std::vector<Index>> components = components_of(graph);
  if (components.size() < 2) return search_order(network, graph, options);
  std::vector<Index> vertex(network.num_variables());
  for (Index v = 0; v < graph.size(); ++v) vertex[graph.variables[v]] = v;
  for (std::vector<Index>& component : components) {
    for (Index& v : component) v = graph.variables[v];
  }
  const std::vector<std::vector<std::size_t>> factors = factors_of(network, components);
  std::vector<Index> number(network.num_variables());
  FoundOrder all;
  all.order.complete = true;
  for (std::size_t p = 0; p < components.size(); ++p) {
    std::vector<Index> vertices = {0};
    if (components[p].size() > 1) {
      const Skeleton skeleton(network, components[p], factors[p], number);
      FoundOrder found = search_order(skeleton.network, skeleton.graph, options);
      all.plan.width = std::max(all.plan.width, found.plan.width);
      all.order.complete = all.order.complete && found.order.complete;
      vertices = std::move(found.order.vertices);
    }
    for (const Index v : vertices) all.order.vertices.push_back(vertex[components[p][v]]);
  }
  if (!all.order.complete) return all;
  all.order = EliminationTree(graph, all.order.vertices).order();
  all.plan = plan_of(network, graph, all.order);
  return all;
}

EliminationPlan given_up(Index width) {
  EliminationPlan plan;
  plan.complete = false;
  plan.width = width;
  plan.largest_clique = plan.entries = plan.operations = plan.draw_operations = kLargestTable;
  plan.bytes = sizeof(double) * kLargestTable;
  return plan;
}

SearchOptions search_options(const PlanOptions& options) {
  SearchOptions search;
  if (std::isfinite(options.memory_limit)) search.memory = options.memory_limit;
  search.most_looks = options.most_looks;
  constexpr double longest = 1e8;  // beyond it a point in time may be out of range
  if (options.seconds < longest) {
    search.deadline = Effort::Clock::now() + std::chrono::duration_cast<Effort::Clock::duration>(
                                                 std::chrono::duration<double>(options.seconds));
  }
  return search;
}

Rng annealing_rng(std::uint64_t number) { return make_rng(kOrderSeed, Stream::elimination_annealing, number); }

double cost(const EliminationPlan& plan, const SearchOptions& options) {
  const double slices = plan.bytes > options.memory ? std::max(2.0, plan.bytes / options.memory) : 1.0;
  return plan.operations * slices;
}

FoundOrder search_order(const Network& network, const Graph& graph, const SearchOptions& options) {
  FoundOrder found;
  Search search(network, graph, options, found);
  search.try_greedy_orders();
  search.anneal();
  return found;
}

void improve_order(const Network& network, const Graph& graph, const SearchOptions& options, FoundOrder& found) {
  Search(network, graph, options, found).anneal();
}

FoundOrder find_order(const Network& network, const Graph& graph, const PlanOptions& options) {
  if (options.seconds > 0.0) return search_components(network, graph, search_options(options));
  FoundOrder found;
  found.order = order_by_table(graph);
  found.plan.width = found.order.width;
  if (found.order.complete) found.plan = plan_of(network, graph, found.order);
  return found;
}

}  // namespace poise::exact

namespace poise {

EliminationPlan plan_elimination(const Network& network, const PlanOptions& options) {
  const exact::Graph graph = exact::graph_of(network);
  exact::FoundOrder found = exact::find_order(network, graph, options);
  const bool complete = found.order.complete && found.plan.largest_clique <= exact::kLargestTable * (1.0 + 1e-9);
  return complete ? std::move(found.plan) : exact::given_up(found.plan.width);
}

}  // namespace poise
