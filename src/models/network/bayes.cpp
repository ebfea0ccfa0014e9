/// Sums of rows and cycles of Bayesian networks.
#include "models/network/bayes.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace poise {

bool adds_up_to_one(std::span<const double> row) {
  const double sum = std::accumulate(row.begin(), row.end(), 0.0);
  return std::abs(sum - 1) <= 0.005 * static_cast<double>(std::max<std::size_t>(row.size(), 2)) + 1e-9;
}

namespace {

std::span<const Index> parents_in(const Network& network, std::size_t factor) {
  const std::span<const Index> scope = network.scope(factor);
  return scope.first(scope.size() - 1);
}

/// From a variable that waits for a parent, some parent waits as well: where the walk upwards meets itself is a cycle.
Index walk_to_cycle(const Network& network, const std::vector<Index>& pending) {
  const Index n = network.num_variables();
  std::vector<std::size_t> factor_of(n);
  for (std::size_t f = 0; f < network.num_factors(); ++f) factor_of[network.scope(f).back()] = f;
  const auto waits = [&](Index i) { return pending[i] > 0; };
  std::vector<bool> visited(n, false);
  Index i = 0;
  while (!waits(i)) ++i;
  while (!visited[i]) {
    visited[i] = true;
    const std::span<const Index> parents = parents_in(network, factor_of[i]);
    i = *std::find_if(parents.begin(), parents.end(), waits);
  }
  return i;
}

}  // namespace

std::optional<Index> own_ancestor(const Network& network) {
  const std::size_t n = network.num_variables();
  std::vector<std::size_t> start(n + 1, 0);  // of each variable's children in `children`
  std::vector<Index> pending(n, 0);          // parents not yet ordered
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    const std::span<const Index> parents = parents_in(network, f);
    pending[network.scope(f).back()] = static_cast<Index>(parents.size());
    for (const Index parent : parents) ++start[parent];
  }
  std::partial_sum(start.begin(), start.end(), start.begin());
  std::vector<Index> children(start.back());
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    for (const Index parent : parents_in(network, f)) children[--start[parent]] = network.scope(f).back();
  }
  std::vector<Index> ordered;
  ordered.reserve(n);
  for (Index i = 0; i < n; ++i) {
    if (pending[i] == 0) ordered.push_back(i);
  }
  for (std::size_t k = 0; k < ordered.size(); ++k) {
    for (std::size_t c = start[ordered[k]]; c < start[ordered[k] + std::size_t{1}]; ++c) {
      if (--pending[children[c]] == 0) ordered.push_back(children[c]);
    }
  }
  if (ordered.size() == n) return std::nullopt;
  return walk_to_cycle(network, pending);
}

}  // namespace poise
