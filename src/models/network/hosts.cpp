/// Finds for each scope one that holds it, largest scopes first.
#include "models/network/hosts.hpp"

#include <algorithm>
#include <numeric>

namespace poise {

std::vector<std::size_t> find_hosts(const Scopes& scopes, const std::vector<bool>& may_host, Index num_variables) {
  std::vector<std::vector<std::size_t>> hosts_of(num_variables);  // hosts that hold a variable
  std::vector<std::size_t> by_size(scopes.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](std::size_t a, std::size_t b) { return scopes[a].size() > scopes[b].size(); });
  std::vector<std::size_t> host(scopes.size());
  std::vector<std::size_t> seen(num_variables, scopes.size());  // the scope that last marked a variable
  for (const std::size_t f : by_size) {
    host[f] = f;
    const std::span<const Index> scope = scopes[f];
    if (scope.empty()) continue;
    const Index rarest = *std::min_element(scope.begin(), scope.end(),
                                           [&](Index a, Index b) { return hosts_of[a].size() < hosts_of[b].size(); });
    for (const std::size_t candidate : hosts_of[rarest]) {
      for (const Index i : scopes[candidate]) seen[i] = f;
      const bool inside = std::all_of(scope.begin(), scope.end(), [&](Index i) { return seen[i] == f; });
      for (const Index i : scopes[candidate]) seen[i] = scopes.size();
      if (!inside) continue;
      host[f] = candidate;
      break;
    }
    if (host[f] != f || !may_host[f]) continue;
    for (const Index i : scope) hosts_of[i].push_back(f);
  }
  return host;
}

}  // namespace poise
