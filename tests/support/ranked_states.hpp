/// Random networks with ties, zeros and evidence, and all of their states in order of probability.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/network.hpp>

namespace poise::testing {

struct TiedNetwork {
  Index factors = 6;
  double zeros = 0.0;  ///< part of the entries that are zero
  bool ties = false;   ///< entries are powers of two, so that many states are equally probable
};

/// Five to nine variables of one to four levels, factors of one to three of them; the last variable is observed.
inline Network tied_network(const TiedNetwork& shape, Rng& rng) {
  const auto below = [&](std::size_t n) { return static_cast<Index>(rng.uniform() * static_cast<double>(n)); };
  Network network;
  network.name = "tied";
  network.cardinalities.resize(5 + below(5));
  for (Index& levels : network.cardinalities) levels = 1 + below(3);
  network.cardinalities[0] = 4;
  const Index n = network.num_variables();
  for (Index f = 0; f < shape.factors; ++f) {
    std::vector<Index> scope(n);
    std::iota(scope.begin(), scope.end(), Index{0});
    for (Index k = 0; k < 3; ++k) std::swap(scope[k], scope[k + below(n - k)]);
    scope.resize(1 + f % 3);
    std::size_t size = 1;
    for (const Index i : scope) size *= network.cardinalities[i];
    std::vector<double> table(size);
    for (double& value : table) {
      value = shape.ties ? std::ldexp(1.0, static_cast<int>(below(4))) : 0.1 + rng.uniform();
      if (rng.uniform() < shape.zeros) value = 0.0;
    }
    network.add_factor(scope, table);
  }
  network.observed.assign(n, Network::kFree);
  network.observed[n - 1] = below(network.cardinalities[n - 1]);
  return network;
}

struct ListedState {
  double log_value;
  std::vector<Index> levels;
};

/// All states of positive probability that agree with the evidence, best first.
inline std::vector<ListedState> listed_states(const Network& network) {
  std::vector<ListedState> states;
  const Index n = network.num_variables();
  std::vector<Index> x(n, 0);
  for (Index i = 0; i < n; ++i) x[i] = network.is_observed(i) ? network.observed[i] : 0;
  for (bool more = true; more;) {
    double log_value = 0.0;
    for (std::size_t f = 0; f < network.num_factors(); ++f) {
      std::size_t place = 0;
      for (const Index i : network.scope(f)) place = place * network.cardinalities[i] + x[i];
      log_value += std::log(network.table(f)[place]);
    }
    if (std::isfinite(log_value)) states.push_back({log_value, x});
    more = false;
    for (Index i = 0; i < n && !more; ++i) {
      if (network.is_observed(i)) continue;
      more = ++x[i] < network.cardinalities[i];
      if (!more) x[i] = 0;
    }
  }
  std::stable_sort(states.begin(), states.end(),
                   [](const ListedState& a, const ListedState& b) { return a.log_value > b.log_value; });
  return states;
}

}  // namespace poise::testing
