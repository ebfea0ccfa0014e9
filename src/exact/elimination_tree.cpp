/// Elimination trees: rotations, and annealing by them.
#include "exact/elimination_order.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace poise::exact {

EliminationTree::EliminationTree(const Graph& graph, std::span<const Index> order)
    : graph_(graph), log_table_(graph.size()), mark_(graph.size(), 0) {
  hang_up(order);
}

/// The later neighbours of a vertex are its own among them and those that its children leave over.
void EliminationTree::hang_up(std::span<const Index> order) {
  const Index n = graph_.size();
  parent_.assign(n, kNone);
  children_.assign(n, {});
  later_.assign(n, {});
  std::vector<Index> position(n);
  for (Index place = 0; place < n; ++place) position[order[place]] = place;
  for (Index place = 0; place < n; ++place) {
    const Index v = order[place];
    std::vector<Index>& later = later_[v];
    ++stamp_;
    mark_[v] = stamp_;
    const auto add = [&](Index w) {
      if (mark_[w] == stamp_) return;
      mark_[w] = stamp_;
      later.push_back(w);
    };
    for (const Index w : graph_.of(v)) {
      if (position[w] > place) add(w);
    }
    for (const Index child : children_[v]) {
      for (const Index w : later_[child]) add(w);
    }
    log_table_[v] = graph_.log_levels[v];
    for (const Index w : later) {
      log_table_[v] += graph_.log_levels[w];
      if (parent_[v] == kNone || position[w] < position[parent_[v]]) parent_[v] = w;
    }
    if (parent_[v] != kNone) children_[parent_[v]].push_back(v);
  }
}

double EliminationTree::entries() const {
  double sum = 0.0;
  for (const double table : log_table_) sum += std::exp(table);
  return sum;
}

std::vector<Index> EliminationTree::vertices() const {
  std::vector<Index> out;
  out.reserve(parent_.size());
  std::vector<Index> stack;
  for (Index root = 0; root < parent_.size(); ++root) {
    if (parent_[root] != kNone) continue;
    for (stack = {root}; !stack.empty();) {
      const Index v = stack.back();
      stack.pop_back();
      out.push_back(v);
      stack.insert(stack.end(), children_[v].begin(), children_[v].end());
    }
  }
  std::reverse(out.begin(), out.end());
  return out;
}

Order EliminationTree::order() const {
  Order out;
  out.vertices = vertices();
  for (const Index v : out.vertices) {
    out.later.insert(out.later.end(), later_[v].begin(), later_[v].end());
    out.start.push_back(out.later.size());
    out.width = std::max(out.width, static_cast<Index>(later_[v].size()));
  }
  out.entries = entries();
  out.complete = true;
  return out;
}

bool EliminationTree::is_later(Index vertex, Index of) const {
  return std::find(later_[of].begin(), later_[of].end(), vertex) != later_[of].end();
}

/// The parent goes first: its neighbours are its own, those that its other children leave over, and those that children
/// of the child leave over where the parent is among them. The child then has what the parent had, because the same
/// vertices are gone.
EliminationTree::Rotation EliminationTree::look_at(Index child, Effort& effort) {
  const Index parent = parent_[child];
  const std::uint64_t above = ++stamp_;
  const std::uint64_t taken = ++stamp_;
  found_.clear();
  mark_[child] = above;
  for (const Index w : later_[parent]) mark_[w] = above;
  double table = graph_.log_levels[parent];
  std::size_t looks = later_[parent].size() + graph_.of(parent).size() + 8;
  for (const Index w : graph_.of(parent)) {
    if (mark_[w] != above) continue;
    mark_[w] = taken;
    found_.push_back(w);
    table += graph_.log_levels[w];
  }
  const auto add_below = [&](Index below) {
    looks += later_[below].size();
    for (const Index w : later_[below]) {
      if (mark_[w] != above) continue;
      mark_[w] = taken;
      found_.push_back(w);
      table += graph_.log_levels[w];
    }
  };
  for (const Index below : children_[parent]) {
    if (below != child) add_below(below);
  }
  for (const Index below : children_[child]) {
    looks += later_[below].size();
    if (is_later(parent, below)) add_below(below);
  }
  effort.looks += looks;
  return {.child = child,
          .parent = parent,
          .child_table = log_table_[parent] - graph_.log_levels[parent] + graph_.log_levels[child],
          .parent_table = table};
}

void EliminationTree::rotate(const Rotation& rotation) {
  const Index child = rotation.child, parent = rotation.parent;
  std::erase(children_[parent], child);
  std::vector<Index>& below = children_[child];
  const auto stays = std::stable_partition(below.begin(), below.end(), [&](Index b) { return !is_later(parent, b); });
  for (auto it = stays; it != below.end(); ++it) parent_[*it] = parent;
  children_[parent].insert(children_[parent].end(), stays, below.end());
  below.erase(stays, below.end());
  below.push_back(parent);
  parent_[child] = std::exchange(parent_[parent], child);
  if (parent_[child] != kNone) {
    std::vector<Index>& siblings = children_[parent_[child]];
    *std::find(siblings.begin(), siblings.end(), parent) = child;
  }
  std::swap(later_[child], later_[parent]);  // what the parent had is the child's
  later_[parent].assign(found_.begin(), found_.end());
  log_table_[child] = rotation.child_table;
  log_table_[parent] = rotation.parent_table;
}

void EliminationTree::anneal(const Annealing& annealing, Rng& rng, Effort& effort) {
  const Index n = graph_.size();
  const std::uint64_t start = effort.looks;
  std::vector<Index> best = vertices();
  double fewest = entries();
  const double range = std::log(annealing.last_temperature / annealing.first_temperature);
  for (std::uint64_t done = 0; done < annealing.looks && !effort.late(); done = effort.looks - start) {
    const double temperature = annealing.first_temperature *
                               std::exp(range * static_cast<double>(done) / static_cast<double>(annealing.looks));
    double now = entries();
    for (Index step = 0; step < n; ++step) {
      const auto v = static_cast<Index>(rng.uniform() * n);
      if (parent_[v] == kNone) continue;
      const Rotation rotation = look_at(v, effort);
      const double before = std::exp(log_table_[v]) + std::exp(log_table_[rotation.parent]);
      const double after = std::exp(rotation.child_table) + std::exp(rotation.parent_table);
      if (after > before && rng.uniform() >= std::pow(before / after, 1.0 / temperature)) continue;
      rotate(rotation);
      now += after - before;
    }
    if (now < fewest * 0.999 && entries() < fewest) {
      fewest = entries();
      best = vertices();
    }
    effort.looks += 8 * n;
  }
  hang_up(best);
}

}  // namespace poise::exact
