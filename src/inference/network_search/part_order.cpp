/// Orders of elimination of a part of a network, found greedily in little time.
#include <algorithm>
#include <cmath>

#include "inference/network_search/part.hpp"

namespace poise::network_search {

namespace {

/// The one with the largest table of so many variables is fixed: large enough to make room, with many ways to do so.
constexpr std::size_t kSampled = 8;
/// Chance changes the order of tables that differ by less: none where all variables have two levels.
constexpr double kBlur = 0.5;

}  // namespace

PartOrder::PartOrder(const LogNetwork& network)
    : network_(network),
      beside_(network.size()),
      log_levels_(network.size(), 0.0),
      log_table_(network.size(), 0.0),
      noise_(network.size(), 0.0),
      version_(network.size(), 0),
      mark_(network.size(), 0),
      alive_at_(network.size(), kNone),
      place_(network.size(), kNone) {}

void PartOrder::put(Index v) { queue_.push({log_table_[v] + noise_[v], v, ++version_[v]}); }

/// Takes a variable out of the lists of its neighbours and of those that are left.
void PartOrder::leave(Index v) {
  for (const Index u : beside_[v]) {
    std::vector<Index>& list = beside_[u];
    looks_ += static_cast<double>(list.size());
    *std::find(list.begin(), list.end(), v) = list.back();
    list.pop_back();
    log_table_[u] -= log_levels_[v];
  }
  alive_[alive_at_[v]] = alive_.back();
  alive_at_[alive_.back()] = alive_at_[v];
  alive_.pop_back();
  alive_at_[v] = kNone;
}

void PartOrder::eliminate(Index v) {
  leave(v);
  place_[v] = static_cast<Index>(vertices_.size());
  vertices_.push_back(v);
  const std::vector<Index>& clique = beside_[v];
  later_.insert(later_.end(), clique.begin(), clique.end());
  start_.push_back(later_.size());
  for (const Index a : clique) {
    ++stamp_;
    mark_[a] = stamp_;
    for (const Index u : beside_[a]) mark_[u] = stamp_;
    looks_ += static_cast<double>(beside_[a].size() + clique.size());
    for (const Index b : clique) {
      if (mark_[b] == stamp_) continue;
      beside_[a].push_back(b);
      log_table_[a] += log_levels_[b];
    }
  }
  for (const Index u : clique) put(u);
}

void PartOrder::fix_one(Rng& rng) {
  Index chosen = kNone;
  for (std::size_t k = 0; k < kSampled; ++k) {
    const Index v = alive_[static_cast<std::size_t>(rng.uniform() * static_cast<double>(alive_.size()))];
    if (chosen == kNone || log_table_[v] > log_table_[chosen]) chosen = v;
  }
  leave(chosen);
  for (const Index u : beside_[chosen]) put(u);
}

void PartOrder::find(std::span<const Choice> part, const PartLimits& limits, Rng& rng) {
  for (const Index v : vertices_) place_[v] = kNone;
  vertices_.clear();
  later_.clear();
  start_.assign(1, 0);
  queue_ = {};
  alive_.clear();
  looks_ = 0.0;
  const exact::Graph& graph = network_.graph();
  for (const Choice& choice : part) {
    const Index v = choice.variable;
    alive_at_[v] = static_cast<Index>(alive_.size());
    alive_.push_back(v);
    log_levels_[v] = std::log(static_cast<double>(choice.levels));
    noise_[v] = kBlur * rng.uniform();
  }
  for (const Choice& choice : part) {
    const Index v = choice.variable;
    beside_[v].clear();
    log_table_[v] = log_levels_[v];
    looks_ += static_cast<double>(graph.of(v).size());
    for (const Index u : graph.of(v)) {
      if (alive_at_[u] == kNone) continue;
      beside_[v].push_back(u);
      log_table_[v] += log_levels_[u];
    }
    put(v);
  }
  const double most = std::log(limits.largest) + 1e-9;
  double entries = 0.0;
  while (!alive_.empty() && entries < limits.entries) {
    const Scored best = queue_.top();
    queue_.pop();
    if (alive_at_[best.vertex] == kNone || best.version != version_[best.vertex]) continue;
    if (log_table_[best.vertex] <= most) {
      entries += std::exp(log_table_[best.vertex]);
      eliminate(best.vertex);
    } else {
      put(best.vertex);
      fix_one(rng);
    }
  }
  for (const Index v : alive_) alive_at_[v] = kNone;
  // What is left keeps its level, and so do tables without it.
  std::size_t kept = 0;
  for (std::size_t place = 0; place < vertices_.size(); ++place) {
    const std::size_t first = kept;
    const std::size_t end = start_[place + 1];
    for (std::size_t k = start_[place]; k < end; ++k) {
      if (place_[later_[k]] != kNone) later_[kept++] = later_[k];
    }
    start_[place] = first;
    std::sort(later_.begin() + static_cast<std::ptrdiff_t>(first), later_.begin() + static_cast<std::ptrdiff_t>(kept),
              [&](Index a, Index b) { return place_[a] < place_[b]; });
  }
  start_[vertices_.size()] = kept;
  later_.resize(kept);
}

}  // namespace poise::network_search
