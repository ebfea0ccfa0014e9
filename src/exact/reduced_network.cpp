/// Takes settled variables and levels out of a network.
#include "exact/reduced_network.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "models/network/support.hpp"

namespace poise {

ReducedNetwork::ReducedNetwork(const Network& original) : settled(original.num_variables(), 0) {
  const Domains domains = propagate_zeros(original);
  const Index n = original.num_variables();
  std::vector<Index> number(n, Network::kFree);
  network.name = original.name;
  level_start.push_back(0);
  for (Index i = 0; i < n; ++i) {
    std::vector<Index> levels;
    for (Index level = 0; level < original.cardinalities[i]; ++level) {
      const bool observed_elsewhere = original.is_observed(i) && original.observed[i] != level;
      if (!observed_elsewhere && domains.allows(i, level)) levels.push_back(level);
    }
    if (levels.size() == 1) {
      settled[i] = levels.front();
      continue;
    }
    number[i] = network.num_variables();
    kept.push_back(i);
    network.cardinalities.push_back(static_cast<Index>(levels.size()));
    network.names.push_back(original.variable_name(i));
    level_of.insert(level_of.end(), levels.begin(), levels.end());
    level_start.push_back(level_of.size());
  }
  // Factors may share a table; with the same levels of the same variables they still do.
  using Key = std::pair<std::size_t, std::vector<Index>>;
  std::map<Key, std::size_t> tables;
  for (std::size_t f = 0; f < original.num_factors(); ++f) {
    const std::span<const Index> scope = original.scope(f);
    std::size_t base = original.table_start[f];
    std::size_t stride = 1;
    std::vector<Index> inside;
    std::vector<std::size_t> strides;
    for (std::size_t k = scope.size(); k-- > 0;) {
      const Index i = scope[k];
      if (number[i] == Network::kFree) {
        base += stride * settled[i];
      } else {
        inside.push_back(number[i]);
        strides.push_back(stride);
      }
      stride *= original.cardinalities[i];
    }
    if (inside.empty()) {
      log_constant += std::log(original.values[base]);
      continue;
    }
    Key key{base, {}};
    for (std::size_t k = 0; k < inside.size(); ++k) {
      key.second.push_back(static_cast<Index>(strides[k]));
      for (std::size_t at = level_start[inside[k]]; at < level_start[inside[k] + 1]; ++at) {
        key.second.push_back(level_of[at]);
      }
      key.second.push_back(Network::kFree);
    }
    const auto [entry, fresh] = tables.try_emplace(std::move(key), network.values.size());
    network.scopes.insert(network.scopes.end(), inside.rbegin(), inside.rend());
    network.scope_start.push_back(network.scopes.size());
    network.table_start.push_back(entry->second);
    if (!fresh) continue;
    std::vector<Index> at(inside.size(), 0);
    for (bool more = true; more;) {
      std::size_t place = base;
      for (std::size_t k = 0; k < inside.size(); ++k) place += strides[k] * level_of[level_start[inside[k]] + at[k]];
      network.values.push_back(original.values[place]);
      more = false;
      for (std::size_t k = 0; k < inside.size() && !more; ++k) {
        more = ++at[k] < network.cardinalities[inside[k]];
        if (!more) at[k] = 0;
      }
    }
  }
}

std::vector<Index> ReducedNetwork::original_state(std::span<const Index> levels) const {
  std::vector<Index> state = settled;
  for (std::size_t k = 0; k < kept.size(); ++k) state[kept[k]] = level_of[level_start[k] + levels[k]];
  return state;
}

std::vector<Index> ReducedNetwork::reduced_state(std::span<const Index> original_levels) const {
  std::vector<Index> levels(kept.size(), 0);
  for (std::size_t k = 0; k < kept.size(); ++k) {
    const auto first = level_of.begin() + static_cast<std::ptrdiff_t>(level_start[k]);
    const auto last = level_of.begin() + static_cast<std::ptrdiff_t>(level_start[k + 1]);
    const auto found = std::find(first, last, original_levels[kept[k]]);
    if (found != last) levels[k] = static_cast<Index>(found - first);
  }
  return levels;
}

}  // namespace poise
