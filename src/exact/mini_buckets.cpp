/// Mini-buckets, one variable after another.
#include "exact/mini_buckets.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "exact/elimination_order.hpp"
#include "exact/junction_tree_tables.hpp"

namespace poise {

namespace {

/// Looks at edges for finding an order, for each variable: greedy orders, little annealing.
constexpr double kLooksPerVariable = 4000.0;

/// A table of logarithms, its variables by their place in the order, the first eliminated first and slowest.
struct MiniTable {
  std::vector<Index> places;
  std::vector<double> logs;
};

double entries_of(std::span<const Index> places, const std::vector<Index>& levels) {
  return std::accumulate(places.begin(), places.end(), 1.0,
                         [&](double product, Index place) { return product * levels[place]; });
}

std::vector<Index> united(const std::vector<Index>& a, const std::vector<Index>& b) {
  std::vector<Index> all;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

class MiniBuckets {
 public:
  MiniBuckets(const Network& network, const MiniBucketOptions& options) : options_(options) {
    const exact::Graph graph = exact::graph_of(network);
    PlanOptions plan;
    plan.most_looks = kLooksPerVariable * graph.size();
    exact::Order order = exact::find_order(network, graph, plan).order;
    if (!order.complete) order = exact::order_by_table(graph, std::numeric_limits<double>::infinity());
    std::vector<Index> place(network.num_variables(), Network::kFree);
    for (Index k = 0; k < order.vertices.size(); ++k) {
      place[graph.variables[order.vertices[k]]] = k;
      levels_.push_back(network.cardinalities[graph.variables[order.vertices[k]]]);
    }
    buckets_.resize(levels_.size());
    for (std::size_t f = 0; f < network.num_factors(); ++f) take(network, f, place);
  }

  MiniBucketBound run() {
    for (Index k = 0; k < buckets_.size(); ++k) {
      if (options_.halt && options_.halt()) {
        bound_.log_bound = std::numeric_limits<double>::infinity();
        bound_.exact = false;
        break;
      }
      eliminate(k);
    }
    return bound_;
  }

 private:
  void take(const Network& network, std::size_t f, const std::vector<Index>& place) {
    MiniTable table;
    std::vector<std::pair<Index, std::size_t>> digits;
    std::size_t stride = 1;
    std::size_t base = network.table_start[f];
    const std::span<const Index> scope = network.scope(f);
    for (std::size_t k = scope.size(); k-- > 0;) {
      if (place[scope[k]] != Network::kFree) digits.emplace_back(place[scope[k]], stride);
      if (network.is_observed(scope[k])) base += stride * network.observed[scope[k]];
      stride *= network.cardinalities[scope[k]];
    }
    std::sort(digits.begin(), digits.end());
    std::vector<Index> levels;
    std::vector<std::size_t> strides;
    for (const auto& [at, step] : digits) {
      table.places.push_back(at);
      levels.push_back(levels_[at]);
      strides.push_back(step);
    }
    std::vector<std::ptrdiff_t> places(static_cast<std::size_t>(entries_of(table.places, levels_)));
    exact::combine(levels, strides, places.data());
    for (const std::ptrdiff_t at : places)
      table.logs.push_back(std::log(network.values[base + static_cast<std::size_t>(at)]));
    put(std::move(table));
  }

  void put(MiniTable table) {
    if (table.places.empty()) {
      bound_.log_bound += table.logs[0];
      return;
    }
    held_ += static_cast<double>(table.logs.size());
    buckets_[table.places.front()].push_back(std::move(table));
  }

  /// Tables of the bucket in groups whose product is small enough: the largest first, each into the group that it
  /// enlarges least.
  [[nodiscard]] std::vector<std::vector<const MiniTable*>> groups_of(Index k,
                                                                     std::vector<std::vector<Index>>& scopes) const {
    const double room = std::max(1.0, options_.memory_limit / sizeof(double) - held_);
    const double largest = std::min(options_.largest_table, room);
    std::vector<const MiniTable*> tables;
    for (const MiniTable& table : buckets_[k]) tables.push_back(&table);
    std::stable_sort(tables.begin(), tables.end(),
                     [](const MiniTable* a, const MiniTable* b) { return a->logs.size() > b->logs.size(); });
    std::vector<std::vector<const MiniTable*>> groups;
    for (const MiniTable* table : tables) {
      std::size_t best = groups.size();
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t g = 0; g < groups.size(); ++g) {
        const double after = entries_of(united(scopes[g], table->places), levels_);
        const double growth = after / entries_of(scopes[g], levels_);
        if (after > largest && growth > 1.0) continue;
        if (growth < least) {
          least = growth;
          best = g;
        }
      }
      if (best == groups.size()) {
        groups.emplace_back();
        scopes.push_back(table->places);
      } else {
        scopes[best] = united(scopes[best], table->places);
      }
      groups[best].push_back(table);
    }
    return groups;
  }

  /// The maximum over the first variable of a product, or where `keep` is set, over all but the first.
  [[nodiscard]] std::vector<double> maximise(std::span<const MiniTable* const> tables,
                                             const std::vector<Index>& scope) {
    std::vector<Index> levels;
    for (const Index place : scope) levels.push_back(levels_[place]);
    std::vector<exact::Digit> digits;
    std::vector<exact::Source> sources;
    std::vector<std::size_t> first;
    for (const MiniTable* table : tables) {
      first.push_back(digits.size());
      std::size_t stride = 1;
      for (std::size_t d = table->places.size(); d-- > 0;) {
        const auto member = std::lower_bound(scope.begin(), scope.end(), table->places[d]) - scope.begin();
        digits.push_back({static_cast<Index>(member), stride});
        stride *= levels_[table->places[d]];
      }
    }
    first.push_back(digits.size());
    for (std::size_t t = 0; t < tables.size(); ++t) {
      sources.push_back({tables[t]->logs.data(), std::span(digits).subspan(first[t], first[t + 1] - first[t])});
    }
    constexpr std::size_t longest_row = 512;
    std::size_t row = 1;
    std::size_t in_row = 0;
    for (; in_row + 1 < scope.size(); ++in_row) {
      const std::size_t longer = row * levels[scope.size() - 1 - in_row];
      if (row > 1 && longer > longest_row) break;
      row = longer;
    }
    std::vector<double> message(static_cast<std::size_t>(entries_of(scope, levels_)) / levels[0]);
    pass_.prepare({.levels = levels, .summed = 1, .in_row = in_row}, sources);
    for (bool more = pass_.open(sources); more; more = pass_.next()) {
      pass_.collect(message.data() + pass_.offset(), Reduction::max);
    }
    bound_.operations += static_cast<double>(message.size()) * levels[0] * static_cast<double>(tables.size());
    return message;
  }

  /// The largest entry of a product of tables at each level of the variable that is eliminated.
  [[nodiscard]] std::vector<double> max_marginal(const MiniTable& product, Index levels) const {
    std::vector<double> best(levels, kMinusInfinity);
    const std::size_t size = product.logs.size() / levels;
    for (Index level = 0; level < levels; ++level) {
      const auto from = product.logs.begin() + static_cast<std::ptrdiff_t>(level * size);
      best[level] = *std::max_element(from, from + static_cast<std::ptrdiff_t>(size));
    }
    return best;
  }

  /// The product of tables over a scope.
  [[nodiscard]] MiniTable multiply(std::span<const MiniTable* const> tables, const std::vector<Index>& scope) const {
    MiniTable product{scope, std::vector<double>(static_cast<std::size_t>(entries_of(scope, levels_)), 0.0)};
    std::vector<Index> levels;
    for (const Index place : scope) levels.push_back(levels_[place]);
    std::vector<std::ptrdiff_t> places(product.logs.size());
    for (const MiniTable* table : tables) {
      std::vector<std::size_t> strides(scope.size(), 0);
      std::size_t stride = 1;
      for (std::size_t d = table->places.size(); d-- > 0;) {
        strides[static_cast<std::size_t>(std::lower_bound(scope.begin(), scope.end(), table->places[d]) -
                                         scope.begin())] = stride;
        stride *= levels_[table->places[d]];
      }
      exact::combine(levels, strides, places.data());
      for (std::size_t k = 0; k < places.size(); ++k)
        product.logs[k] += table->logs[static_cast<std::size_t>(places[k])];
    }
    return product;
  }

  void eliminate(Index k) {
    if (buckets_[k].empty()) return;
    std::vector<std::vector<Index>> scopes;
    const std::vector<std::vector<const MiniTable*>> groups = groups_of(k, scopes);
    std::vector<MiniTable> messages;
    if (groups.size() == 1) {
      messages.push_back({{scopes[0].begin() + 1, scopes[0].end()}, maximise(groups[0], scopes[0])});
    } else {
      bound_.exact = false;
      messages = matched(groups, scopes, levels_[k]);
    }
    for (const MiniTable& table : buckets_[k]) held_ -= static_cast<double>(table.logs.size());
    std::vector<MiniTable>().swap(buckets_[k]);
    for (MiniTable& message : messages) {
      const double largest = *std::max_element(message.logs.begin(), message.logs.end());
      if (largest == kMinusInfinity) throw InputError("no state has positive probability");
      for (double& log : message.logs) log -= largest;
      bound_.log_bound += largest;
      put(std::move(message));
    }
  }

  /// The messages of several groups, after their max-marginals have been made the mean of all.
  [[nodiscard]] std::vector<MiniTable> matched(const std::vector<std::vector<const MiniTable*>>& groups,
                                               const std::vector<std::vector<Index>>& scopes, Index levels) {
    std::vector<MiniTable> products;
    std::vector<std::vector<double>> marginals;
    std::vector<double> mean(levels, 0.0);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      products.push_back(multiply(groups[g], scopes[g]));
      marginals.push_back(max_marginal(products.back(), levels));
      for (Index level = 0; level < levels; ++level) {
        mean[level] += marginals[g][level] / static_cast<double>(groups.size());
      }
    }
    std::vector<MiniTable> messages;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      MiniTable correction{{scopes[g].front()}, std::vector<double>(levels, 0.0)};
      for (Index level = 0; level < levels; ++level) {
        // A level that one group rules out is ruled out for all.
        correction.logs[level] = mean[level] == kMinusInfinity ? kMinusInfinity : mean[level] - marginals[g][level];
      }
      const std::vector<const MiniTable*> both{&products[g], &correction};
      messages.push_back({{scopes[g].begin() + 1, scopes[g].end()}, maximise(both, scopes[g])});
    }
    return messages;
  }

  const MiniBucketOptions& options_;
  std::vector<Index> levels_;  ///< by place in the order
  std::vector<std::vector<MiniTable>> buckets_;
  double held_ = 0.0;  ///< entries of all tables
  exact::Pass pass_;
  MiniBucketBound bound_{.exact = true};
};

}  // namespace

MiniBucketBound mini_bucket_bound(const Network& network, const MiniBucketOptions& options) {
  return MiniBuckets(network, options).run();
}

}  // namespace poise
