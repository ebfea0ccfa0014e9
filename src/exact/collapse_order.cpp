/// Greedy removal of variables on the graph in which those that share a factor are neighbours.
///
/// A variable can go while its table, itself and its neighbours, is small enough. So only vertices of few neighbours
/// are ever scored, whatever hubs there are beside them.
#include "exact/collapse_order.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <poise/extend/base/rng.hpp>

#include "exact/elimination_order.hpp"
#include "exact/greedy_sets.hpp"

namespace poise::exact {

namespace {

/// Neighbours of the ends of a new edge are looked through up to this number; the score of a vertex beside two hubs may
/// be out of date.
constexpr std::size_t kMostLookedThrough = 64;

/// What goes first. An edge between a and b counts the product of the logarithms of their levels.
enum class Preference {
  fill,    ///< the fewest new edges between the neighbours, then the smallest table
  growth,  ///< the fewest new edges less those that go with the variable, then the smallest table
  table,   ///< the smallest table, then the fewest new edges
};

struct Trial {
  Preference preference = Preference::fill;
  double second_choice = 0.0;          ///< probability of taking the second best variable instead of the best
  std::uint64_t number = 0;            ///< which tells its random numbers
  std::span<const Index> prefix = {};  ///< variables to begin with, before the first choice
};

/// The graph in which variables that share a factor are neighbours.
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
  Removal(SharedFactorGraph graph, const CollapseLimits& limits, const Trial& trial)
      : graph_(std::move(graph)),
        limits_(limits),
        log_limit_(std::log2(limits.most_entries) + 1e-9),
        trial_(trial),
        rng_(make_rng(kOrderSeed, Stream::collapse_order, trial.number)),
        gone_(graph_.lists.size(), false),
        seen_(graph_.lists.size(), 0),
        scores_({}) {}

  /// What it has cost, in looks at edges.
  [[nodiscard]] std::uint64_t looks() const { return looks_; }
  [[nodiscard]] double log_removed() const { return log_removed_; }

  std::vector<Index> greedy_order(std::span<const Index> candidates) {
    std::vector<Index> order;
    double in_all = 0.0;
    const auto take = [&](Index v) {
      in_all += std::exp2(graph_.log_table[v]);
      if (in_all > limits_.most_in_all) return false;
      order.push_back(v);
      log_removed_ += graph_.log_levels[v];
      return true;
    };
    for (const Index v : trial_.prefix) {
      if (!take(v)) return order;
      join_neighbours(v);
    }
    std::vector<double> first(graph_.lists.size(), Smallest::kOut);
    for (const Index v : candidates) {
      if (!gone_[v]) first[v] = score(v);
    }
    scores_ = Smallest(std::move(first));
    while (scores_.value() < Smallest::kOut) {
      const Index v = choose();
      if (!take(v)) break;
      scores_.set(v, Smallest::kOut);
      join_neighbours(v);
      for (const Index u : concerned_) scores_.set(u, score(u));
    }
    return order;
  }

 private:
  Index choose() {
    const Index best = scores_.place();
    if (trial_.second_choice == 0.0 || rng_.uniform() >= trial_.second_choice) return best;
    const double score_of_best = scores_.value();
    scores_.set(best, Smallest::kOut);
    const Index second = scores_.value() < Smallest::kOut ? scores_.place() : best;
    scores_.set(best, score_of_best);
    return second;
  }

  double score(Index v) {
    if (graph_.log_table[v] > log_limit_) return Smallest::kOut;
    std::vector<Index>& list = graph_.lists[v];
    std::erase_if(list, [&](Index u) { return gone_[u]; });
    double fill = 0.0;
    double neighbours = 0.0;
    for (std::size_t k = 0; k < list.size(); ++k) {
      double missing = 0.0;
      for (std::size_t j = 0; j < k; ++j) {
        if (!graph_.edges.contains(list[j], list[k])) missing += graph_.log_levels[list[j]];
      }
      fill += missing * graph_.log_levels[list[k]];
      neighbours += graph_.log_levels[list[k]];
    }
    looks_ += 8 + list.size() * list.size() / 2;
    constexpr double tie = 1e-4;
    const double chance = trial_.second_choice > 0.0 ? tie * tie * rng_.uniform() : 0.0;
    switch (trial_.preference) {
      case Preference::table: return graph_.log_table[v] + tie * fill + chance;
      case Preference::growth: return fill - neighbours * graph_.log_levels[v] + tie * graph_.log_table[v] + chance;
      default: return fill + tie * graph_.log_table[v] + chance;
    }
  }

  /// Takes `v` out and joins its neighbours. Their scores change, and those of common neighbours of a new edge.
  void join_neighbours(Index v) {
    gone_[v] = true;
    std::vector<Index> clique = std::exchange(graph_.lists[v], {});
    std::erase_if(clique, [&](Index u) { return gone_[u]; });
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
    looks_ += clique.size() * clique.size() / 2;
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
  Trial trial_;
  Rng rng_;
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
  constexpr std::uint64_t most_looks = 20'000'000;  // a few tenths of a second
  // The best of the first three is kept. Every other later trial begins as the best one does and then goes its own way.
  constexpr std::uint64_t plain_trials = 3;
  const SharedFactorGraph graph(scopes, levels);
  std::vector<Index> candidates = scopes.variables;
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  std::vector<Index> best;
  double most_removed = 0.0;
  std::uint64_t looks = 0;
  Rng rng = make_rng(kOrderSeed, Stream::collapse_prefix);
  for (std::uint64_t number = 0; number < limits.trials && looks < most_looks; ++number) {
    Trial trial;
    trial.number = number;
    if (number < plain_trials) {
      trial.preference = static_cast<Preference>(number);
    } else {
      trial.preference = number / 2 % 2 == 0 ? Preference::fill : Preference::growth;
      trial.second_choice = number % 8 < 4 ? 0.3 : 0.1;
      const double length = number % 2 == 0 ? 0.0 : rng.uniform();
      trial.prefix =
          std::span<const Index>(best).first(static_cast<std::size_t>(length * static_cast<double>(best.size())));
    }
    Removal removal(graph, limits, trial);
    std::vector<Index> order = removal.greedy_order(candidates);
    looks += removal.looks() + 4 * candidates.size();
    if (removal.log_removed() > most_removed + 1e-9) {
      most_removed = removal.log_removed();
      best = std::move(order);
    }
    if (best.empty() || best.size() == candidates.size()) break;  // nothing can go, or everything does
  }
  return best;
}

}  // namespace poise::exact
