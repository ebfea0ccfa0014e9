/// Greedy removal of variables on the graph in which those that share a factor are neighbours.
///
/// A variable can go while its table, itself and its neighbours, is small enough. So only vertices of few neighbours
/// are ever scored, whatever hubs there are beside them.
#include "collapse_order.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "edge_set.hpp"
#include "smallest.hpp"

namespace poise::exact {

namespace {

/// Neighbours of the ends of a new edge are looked through up to this number; the score of a vertex beside two hubs may
/// be out of date.
constexpr std::size_t kMostLookedThrough = 64;

/// What goes first; the second is for ties.
enum class Preference {
  fill,           ///< the fewest new edges between neighbours, then the smallest table
  weighted_fill,  ///< the same, an edge counting the product of the logarithms of the levels of its ends
  table,          ///< the smallest table, then the fewest new edges
  growth,         ///< the fewest new edges less those that go with the variable
};

/// Who shares a factor with whom.
struct SharedFactorGraph {
  std::vector<double> log_levels;         ///< base 2
  std::vector<std::vector<Index>> lists;  ///< neighbours; vertices that are gone stay until a list is read
  EdgeSet edges;
  std::vector<double> log_table;  ///< of each vertex with its neighbours

  SharedFactorGraph(const Scopes& scopes, std::span<const Index> levels)
      : log_levels(levels.size()), lists(levels.size()), edges(scopes.variables.size()), log_table(levels.size()) {
    for (std::size_t i = 0; i < levels.size(); ++i) log_levels[i] = std::log2(static_cast<double>(levels[i]));
    log_table = log_levels;
    for (std::size_t f = 0; f < scopes.size(); ++f) {
      const std::span<const Index> scope = scopes[f];
      for (std::size_t k = 0; k < scope.size(); ++k) {
        for (std::size_t j = 0; j < k; ++j) join(scope[j], scope[k]);
      }
    }
  }

  bool join(Index a, Index b) {
    if (!edges.insert(a, b)) return false;
    lists[a].push_back(b);
    lists[b].push_back(a);
    log_table[a] += log_levels[b];
    log_table[b] += log_levels[a];
    return true;
  }
};

/// One greedy order.
class Removal {
 public:
  Removal(SharedFactorGraph graph, std::vector<Index> candidates, const CollapseLimits& limits, Preference preference)
      : graph_(std::move(graph)),
        limits_(limits),
        log_limit_(std::log2(limits.most_entries) + 1e-9),
        preference_(preference),
        gone_(graph_.lists.size(), false),
        seen_(graph_.lists.size(), 0),
        scores_(first_scores(candidates)) {}

  /// Looks at edges, which is what it costs.
  [[nodiscard]] std::uint64_t looks() const { return looks_; }
  [[nodiscard]] double log_removed() const { return log_removed_; }

  std::vector<Index> run() {
    std::vector<Index> order;
    double in_all = 0.0;
    while (scores_.value() < Smallest::kOut) {
      const Index v = scores_.place();
      in_all += std::exp2(graph_.log_table[v]);
      if (in_all > limits_.most_in_all) break;
      order.push_back(v);
      log_removed_ += graph_.log_levels[v];
      remove(v);
    }
    return order;
  }

 private:
  std::vector<double> first_scores(const std::vector<Index>& candidates) {
    std::vector<double> scores(graph_.lists.size(), Smallest::kOut);
    for (const Index v : candidates) scores[v] = score(v);
    return scores;
  }

  double score(Index v) {
    if (graph_.log_table[v] > log_limit_) return Smallest::kOut;
    std::vector<Index>& list = graph_.lists[v];
    std::erase_if(list, [&](Index u) { return gone_[u]; });
    const bool weighted = preference_ == Preference::weighted_fill;
    double fill = 0.0;
    for (std::size_t k = 0; k < list.size(); ++k) {
      for (std::size_t j = 0; j < k; ++j) {
        if (graph_.edges.contains(list[j], list[k])) continue;
        fill += weighted ? graph_.log_levels[list[j]] * graph_.log_levels[list[k]] : 1.0;
      }
    }
    looks_ += 8 + list.size() * list.size() / 2;
    constexpr double tie = 1e-4;
    switch (preference_) {
      case Preference::table: return graph_.log_table[v] + tie * fill;
      case Preference::growth: return fill - static_cast<double>(list.size()) + tie * graph_.log_table[v];
      default: return fill + tie * graph_.log_table[v];
    }
  }

  /// Joins the neighbours of `v` and scores anew who is concerned: they, and those beside both ends of a new edge.
  void remove(Index v) {
    gone_[v] = true;
    scores_.set(v, Smallest::kOut);
    const std::vector<Index> clique = std::exchange(graph_.lists[v], {});
    concerned_.clear();
    ++stamp_;
    for (const Index u : clique) {
      graph_.log_table[u] -= graph_.log_levels[v];
      seen_[u] = stamp_;
      concerned_.push_back(u);
    }
    for (std::size_t k = 0; k < clique.size(); ++k) {
      for (std::size_t j = 0; j < k; ++j) {
        if (graph_.join(clique[j], clique[k])) find_beside(clique[j], clique[k]);
      }
    }
    for (const Index u : concerned_) scores_.set(u, score(u));
  }

  void find_beside(Index a, Index b) {
    if (graph_.lists[a].size() > graph_.lists[b].size()) std::swap(a, b);
    const std::vector<Index>& list = graph_.lists[a];
    if (list.size() > kMostLookedThrough) return;
    looks_ += list.size();
    for (const Index w : list) {
      if (gone_[w] || seen_[w] == stamp_ || graph_.log_table[w] > log_limit_ || !graph_.edges.contains(w, b)) continue;
      seen_[w] = stamp_;
      concerned_.push_back(w);
    }
  }

  SharedFactorGraph graph_;
  CollapseLimits limits_;
  double log_limit_;
  Preference preference_;
  std::vector<bool> gone_;
  std::vector<std::uint64_t> seen_;
  std::uint64_t stamp_ = 0;
  std::vector<Index> concerned_;
  std::uint64_t looks_ = 0;
  double log_removed_ = 0.0;
  Smallest scores_;
};

}  // namespace

std::vector<Index> collapse_order(const Scopes& scopes, std::span<const Index> levels, const CollapseLimits& limits) {
  constexpr std::uint64_t most_looks = 30'000'000;  // a few tenths of a second
  const SharedFactorGraph graph(scopes, levels);
  std::vector<Index> candidates = scopes.variables;
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  std::vector<Index> best;
  double most_removed = 0.0;
  std::uint64_t looks = 0;
  for (const Preference preference :
       {Preference::fill, Preference::weighted_fill, Preference::table, Preference::growth}) {
    Removal removal(graph, candidates, limits, preference);
    std::vector<Index> order = removal.run();
    if (removal.log_removed() > most_removed + 1e-9) {
      most_removed = removal.log_removed();
      best = std::move(order);
    }
    looks += removal.looks();
    if (looks > most_looks) break;
  }
  return best;
}

}  // namespace poise::exact
