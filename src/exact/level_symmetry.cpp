/// Tables under an exchange of two levels.
#include "exact/level_symmetry.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace poise {

namespace {

/// Whether a table with `levels` entries along each of its axes stays the same when two levels are exchanged.
bool is_alike(std::span<const double> table, Index levels, Index a, Index b) {
  const auto exchanged = [&](std::size_t level) { return level == a ? b : level == b ? a : level; };
  for (std::size_t place = 0; place < table.size(); ++place) {
    std::size_t other = 0;
    for (std::size_t stride = 1; stride < table.size(); stride *= levels) {
      other += exchanged(place / stride % levels) * stride;
    }
    if (table[place] != table[other]) return false;
  }
  return true;
}

/// Whether nothing changes when two levels of all variables are exchanged, each of which has `levels`.
bool is_alike(const Network& network, Index levels, Index a, Index b) {
  for (Index i = 0; i < network.num_variables(); ++i) {
    if (network.is_observed(i) && (network.observed[i] == a || network.observed[i] == b)) return false;
  }
  for (std::size_t factor = 0; factor < network.num_factors(); ++factor) {
    if (!is_alike(network.table(factor), levels, a, b)) return false;
  }
  return true;
}

}  // namespace

LevelSymmetry::LevelSymmetry(const Network& network) {
  const std::vector<Index>& levels = network.cardinalities;
  if (levels.empty() || levels.front() < 2) return;
  if (std::any_of(levels.begin(), levels.end(), [&](Index count) { return count != levels.front(); })) return;
  class_of_.resize(levels.front());
  std::iota(class_of_.begin(), class_of_.end(), Index{0});
  for (Index b = 1; b < levels.front(); ++b) {
    for (Index a = 0; a < b && class_of_[b] == b; ++a) {
      if (class_of_[a] == a && is_alike(network, levels.front(), a, b)) class_of_[b] = a;
    }
  }
}

double LevelSymmetry::copies() const {
  std::vector<double> members(class_of_.size(), 0.0);
  double copies = 1.0;
  for (const Index first : class_of_) copies *= ++members[first];
  return copies;
}

void LevelSymmetry::normalise(std::span<Index> levels) const {
  if (class_of_.empty()) return;
  constexpr Index kUnseen = std::numeric_limits<Index>::max();
  std::vector<Index> renamed(class_of_.size(), kUnseen);
  std::vector<Index> next = class_of_;  // of each class, by its smallest level: the name that is given out next
  for (Index& level : levels) {
    Index& name = renamed[level];
    if (name == kUnseen) {
      const Index first = class_of_[level];
      name = next[first];
      do ++next[first];
      while (next[first] < class_of_.size() && class_of_[next[first]] != first);
    }
    level = name;
  }
}

}  // namespace poise
