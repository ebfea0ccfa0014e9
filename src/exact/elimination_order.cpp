/// Elimination orders: the graph of a network, greedy by table size and greedy by fill.
#include "exact/elimination_order.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include <poise/extend/base/rng.hpp>

#include "exact/greedy_sets.hpp"

namespace poise::exact {

namespace {

/// Writes one elimination down; false when the order is not worth continuing.
bool note(Order& order, Index vertex, double log_table, std::span<const Index> later, double largest_table) {
  order.vertices.push_back(vertex);
  order.later.insert(order.later.end(), later.begin(), later.end());
  order.start.push_back(order.later.size());
  const double table = std::exp(log_table);
  order.entries += table;
  order.width = std::max(order.width, static_cast<Index>(later.size()));
  return table <= largest_table * (1.0 + 1e-9);
}

}  // namespace

Graph graph_of(const Network& network) {
  constexpr Index none = Network::kFree;
  Graph graph;
  std::vector<Index> number(network.num_variables(), none);
  for (Index i = 0; i < network.num_variables(); ++i) {
    if (network.levels(i) < 2) continue;
    number[i] = graph.size();
    graph.variables.push_back(i);
    graph.log_levels.push_back(std::log(static_cast<double>(network.levels(i))));
  }
  std::vector<Index> members;
  const auto for_each_pair = [&](auto&& visit) {
    for (std::size_t f = 0; f < network.num_factors(); ++f) {
      members.clear();
      for (const Index i : network.scope(f)) {
        if (number[i] != none) members.push_back(number[i]);
      }
      for (const Index a : members) {
        for (const Index b : members) {
          if (a != b) visit(a, b);
        }
      }
    }
  };
  graph.start.assign(graph.variables.size() + 1, 0);
  for_each_pair([&](Index a, Index) { ++graph.start[a + 1]; });
  for (std::size_t v = 0; v < graph.variables.size(); ++v) graph.start[v + 1] += graph.start[v];
  graph.neighbours.resize(graph.start.back());
  std::vector<std::size_t> next(graph.start.begin(), graph.start.end() - 1);
  for_each_pair([&](Index a, Index b) { graph.neighbours[next[a]++] = b; });
  std::size_t kept = 0;  // the same pair may have come from several factors
  for (std::size_t v = 0; v < graph.variables.size(); ++v) {
    const auto first = graph.neighbours.begin() + static_cast<std::ptrdiff_t>(graph.start[v]);
    const auto last = graph.neighbours.begin() + static_cast<std::ptrdiff_t>(next[v]);
    std::sort(first, last);
    graph.start[v] = kept;
    Index previous = none;  // the entry before may have been overwritten already
    for (auto it = first; it != last; ++it) {
      if (it == first || *it != previous) graph.neighbours[kept++] = previous = *it;
    }
  }
  graph.start.back() = kept;
  graph.neighbours.resize(kept);
  return graph;
}

std::vector<std::vector<Index>> components_of(const Graph& graph) {
  std::vector<std::vector<Index>> components;
  std::vector<bool> seen(graph.size(), false);
  for (Index first = 0; first < graph.size(); ++first) {
    if (seen[first]) continue;
    seen[first] = true;
    std::vector<Index> component = {first};
    for (std::size_t k = 0; k < component.size(); ++k) {
      for (const Index u : graph.of(component[k])) {
        if (seen[u]) continue;
        seen[u] = true;
        component.push_back(u);
      }
    }
    std::sort(component.begin(), component.end());
    components.push_back(std::move(component));
  }
  return components;
}

Order order_by_table(const Graph& graph, double largest_table) {
  const Index n = graph.size();
  Order order;
  EdgeSet edges(graph.neighbours.size() / 2);
  // Lists only grow: eliminated vertices stay in them until the list is read, once, when its own vertex goes. So a
  // vertex with a million neighbours costs a million once, not once for each neighbour.
  std::vector<std::vector<Index>> lists(n);
  std::vector<double> log_table = graph.log_levels;
  std::vector<Index> degree(n);
  std::vector<bool> gone(n, false);
  for (Index v = 0; v < n; ++v) {
    lists[v].assign(graph.of(v).begin(), graph.of(v).end());
    degree[v] = static_cast<Index>(lists[v].size());
    for (const Index u : lists[v]) {
      log_table[v] += graph.log_levels[u];
      if (u > v) edges.insert(v, u);
    }
  }
  // Leaves are always right to go first, whatever their levels, and so a tree keeps to width 1.
  const auto score = [&](Index v) { return degree[v] < 2 ? 0.0 : log_table[v]; };
  std::vector<double> first(n);
  for (Index v = 0; v < n; ++v) first[v] = score(v);
  Smallest scores(std::move(first));
  std::vector<Index> alive;
  for (Index step = 0; step < n; ++step) {
    const Index v = scores.place();
    gone[v] = true;
    scores.set(v, Smallest::kOut);
    alive.clear();
    double log_entries = graph.log_levels[v];
    for (const Index u : lists[v]) {
      if (gone[u]) continue;
      alive.push_back(u);
      log_entries += graph.log_levels[u];
    }
    std::vector<Index>().swap(lists[v]);
    if (!note(order, v, log_entries, alive, largest_table)) return order;
    for (std::size_t k = 0; k < alive.size(); ++k) {
      const Index a = alive[k];
      log_table[a] -= graph.log_levels[v];
      --degree[a];
      for (std::size_t j = 0; j < k; ++j) {
        const Index b = alive[j];
        if (!edges.insert(a, b)) continue;
        lists[a].push_back(b);
        lists[b].push_back(a);
        log_table[a] += graph.log_levels[b];
        log_table[b] += graph.log_levels[a];
        ++degree[a];
        ++degree[b];
      }
    }
    for (const Index u : alive) scores.set(u, score(u));
  }
  order.complete = true;
  return order;
}

namespace {

/// The graph as elimination changes it, with the weight of the edges that each vertex's neighbours miss.
class FillGraph {
 public:
  FillGraph(const Graph& graph, EdgeWeight weight, Effort& effort)
      : lists_(graph.size()),
        log_levels_(graph.log_levels),
        weights_(graph.size(), 1),
        fill_(graph.size(), 0),
        share_(graph.size(), 0),
        log_table_(graph.size(), 0.0),
        mark_(graph.size(), 0),
        role_(graph.size(), 0),
        effort_(effort) {
    for (Index v = 0; v < graph.size(); ++v) {
      lists_[v].assign(graph.of(v).begin(), graph.of(v).end());
      if (weight == EdgeWeight::levels) weights_[v] = std::lround(16.0 * graph.log_levels[v] / std::numbers::ln2);
    }
    for (Index v = 0; v < graph.size() && !effort.spent(); ++v) count(v, kNobody);
  }

  /// Twice the weight of the missing edges.
  [[nodiscard]] std::int64_t fill(Index v) const { return fill_[v]; }
  [[nodiscard]] double log_table(Index v) const { return log_table_[v]; }
  [[nodiscard]] std::span<const Index> neighbours(Index v) const { return lists_[v]; }

  /// Joins the neighbours of `v` with each other and takes `v` out. `changed` lists the vertices with a new score, each
  /// once; the neighbours of `v` come first.
  void eliminate(Index v, std::vector<Index>& changed) {
    const std::vector<Index> clique = std::move(lists_[v]);
    changed.assign(clique.begin(), clique.end());
    for (const Index u : clique) {
      std::erase(lists_[u], v);
      effort_.looks += lists_[u].size();
    }
    const std::uint64_t inside = ++stamp_;   // neighbours of v: counted afresh at the end
    const std::uint64_t outside = ++stamp_;  // others with a new score
    for (const Index u : clique) role_[u] = inside;
    fresh_.clear();
    for (const Index a : clique) {
      const std::uint64_t beside = mark_neighbours(a);
      for (const Index b : clique) {
        if (b <= a || mark_[b] == beside) continue;
        fresh_.emplace_back(a, b);
        // An edge that comes between a and b is missed by their common neighbours no more.
        effort_.looks += lists_[b].size();
        for (const Index w : lists_[b]) {
          if (mark_[w] != beside || role_[w] == inside) continue;
          fill_[w] -= 2 * weights_[a] * weights_[b];
          if (role_[w] != outside) changed.push_back(w);
          role_[w] = outside;
        }
      }
    }
    for (const auto& [a, b] : fresh_) {
      lists_[a].push_back(b);
      lists_[b].push_back(a);
    }
    for (const Index u : clique) count(u, inside);
  }

 private:
  static constexpr std::uint64_t kNobody = ~std::uint64_t{0};

  std::uint64_t mark_neighbours(Index v) {
    ++stamp_;
    for (const Index u : lists_[v]) mark_[u] = stamp_;
    effort_.looks += lists_[v].size();
    return stamp_;
  }
  /// Twice the weight of the pairs of neighbours of `v` that are not joined. Those with the role `joined` are joined to
  /// each other, so only the others' neighbours need be looked at: late in an elimination they are few. With weights w
  /// summed over the joined (A) and the others (B), what is missing beside b in B is w_b (w(A) - w(A beside b)) towards
  /// A, and w_b (w(B) - w_b - w(B beside b)) within B, which is met from both ends and so counts half.
  void count(Index v, std::uint64_t joined) {
    std::int64_t all = 0;
    log_table_[v] = log_levels_[v];
    for (const Index u : lists_[v]) {
      all += share_[u] = role_[u] == joined ? 2 * weights_[u] : weights_[u];
      log_table_[v] += log_levels_[u];
    }
    effort_.looks += lists_[v].size();
    fill_[v] = 0;
    for (const Index u : lists_[v]) {
      if (role_[u] == joined) continue;
      std::int64_t present = weights_[u];
      for (const Index w : lists_[u]) present += share_[w];
      fill_[v] += weights_[u] * (all - present);
      effort_.looks += lists_[u].size();
    }
    for (const Index u : lists_[v]) share_[u] = 0;
  }

  std::vector<std::vector<Index>> lists_;
  std::vector<double> log_levels_;
  std::vector<std::int64_t> weights_;
  std::vector<std::int64_t> fill_;
  std::vector<std::int64_t> share_;  ///< scratch of `count`; 0 in between
  std::vector<double> log_table_;
  std::vector<std::uint64_t> mark_;
  std::vector<std::uint64_t> role_;
  std::vector<std::pair<Index, Index>> fresh_;
  std::uint64_t stamp_ = 0;
  Effort& effort_;
};

}  // namespace

Order order_by_fill(const Graph& graph, const FillOptions& options, Effort& effort) {
  Order order;
  Rng rng = make_rng(kOrderSeed, Stream::elimination_order, options.trial);
  FillGraph work(graph, options.weight, effort);
  if (effort.spent()) return order;
  // One number holds the score, an integer, and the fractions that break ties.
  const auto score = [&](Index v) {
    return static_cast<double>(work.fill(v)) + 1e-4 * work.log_table(v) + 1e-6 * rng.uniform();
  };
  std::vector<double> first(graph.size());
  for (Index v = 0; v < graph.size(); ++v) first[v] = score(v);
  Smallest scores(std::move(first));
  std::vector<Index> changed;
  for (Index step = 0; step < graph.size(); ++step) {
    const bool free = step >= options.prefix.size();
    Index v = free ? scores.place() : options.prefix[step];
    scores.set(v, Smallest::kOut);
    if (free && work.fill(v) > 0 && step + 1 < graph.size() && rng.uniform() < options.second_choice) {
      const Index passed_over = v;
      v = scores.place();
      scores.set(v, Smallest::kOut);
      scores.set(passed_over, score(passed_over));
    }
    if (!note(order, v, work.log_table(v), work.neighbours(v), options.largest_table)) return order;
    if (order.entries > options.most_entries) return order;
    work.eliminate(v, changed);
    effort.looks += 16 * changed.size();
    if (effort.spent()) return order;
    for (const Index u : changed) scores.set(u, score(u));
  }
  order.complete = true;
  return order;
}

}  // namespace poise::exact
