/// Scopes of factors, gathered from the variables' links.
#include "engines/common/factor_scopes.hpp"

#include <algorithm>

namespace poise {

namespace {

template <class Use>
void for_each_link(const MarkovNetwork& target, Use&& use) {
  for (Index i = 0; i < target.num_variables(); ++i) {
    for (const MarkovNetwork::Link& link : target.links(i)) use(i, link);
  }
}

}  // namespace

FactorScopes::FactorScopes(const MarkovNetwork& target) : start(target.num_factors() + 1, 0) {
  for_each_link(target, [&](Index, const MarkovNetwork::Link& link) { ++start[link.factor + 1]; });
  for (std::size_t f = 0; f + 1 < start.size(); ++f) start[f + 1] += start[f];
  std::vector<std::size_t> next(start.begin(), start.end() - 1);
  sites.resize(start.back());
  for_each_link(target, [&](Index i, const MarkovNetwork::Link& link) {
    sites[next[link.factor]++] = {i, link.stride};
  });
}

FactorScopes::FactorScopes(const MarkovNetwork& target, std::span<const Index> position) : FactorScopes(target) {
  for (Site& site : sites) site.variable = position[site.variable];
}

std::size_t FactorScopes::entries(const MarkovNetwork& target, std::size_t factor) const {
  std::size_t count = 1;
  for (const Site& site : (*this)[factor]) count *= target.cardinality(site.variable);
  return count;
}

std::vector<std::int64_t> lowest_units(const MarkovNetwork& target, const FactorScopes& scopes) {
  std::vector<std::int64_t> lowest(target.num_factors(), 0);
  for (std::size_t f = 0; f < lowest.size(); ++f) {
    const std::size_t first = target.table_start(f);
    for (std::size_t e = first; e < first + scopes.entries(target, f); ++e) {
      if (!target.is_zero(target.units(e))) lowest[f] = std::min(lowest[f], target.units(e));
    }
  }
  return lowest;
}

}  // namespace poise
