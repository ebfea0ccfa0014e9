/// Small networks of every kind that matters, and their probabilities by multiplying tables.
#pragma once

#include <cmath>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/network.hpp>

namespace poise::testing {

struct RandomNetwork {
  std::vector<Index> cardinalities;
  std::vector<std::vector<Index>> scopes;
  double spread = 1.5;  ///< logs of the entries lie between -spread and spread
  double zeros = 0.0;   ///< part of the entries that are zero
  std::uint64_t seed = 1;
  std::vector<std::vector<Index>> alive;  ///< states that no zero touches, besides 0, 0, ...

  [[nodiscard]] Network make() const {
    Network network;
    network.name = "random";
    network.cardinalities = cardinalities;
    Rng rng(seed, 3);
    for (const std::vector<Index>& scope : scopes) {
      std::size_t size = 1;
      for (const Index i : scope) size *= cardinalities[i];
      std::vector<double> table(size);
      for (std::size_t k = 0; k < size; ++k) {
        table[k] = std::exp(spread * (2.0 * rng.uniform() - 1.0));
        if (rng.uniform() < zeros && k > 0) table[k] = 0.0;
      }
      for (const std::vector<Index>& state : alive) {
        std::size_t place = 0;
        for (const Index i : scope) place = place * cardinalities[i] + state[i];
        if (table[place] == 0.0) table[place] = 1.0;
      }
      network.add_factor(scope, table);
    }
    return network;
  }
};

/// The product of all factors at a state, observed variables at the level they are clamped to.
inline double product_at(const Network& network, const std::vector<Value>& x) {
  double product = 1.0;
  for (std::size_t f = 0; f < network.num_factors(); ++f) {
    std::size_t place = 0;
    for (const Index i : network.scope(f)) place = place * network.cardinalities[i] + x[i];
    product *= network.table(f)[place];
  }
  return product;
}

/// Many-valued, factors of one to three variables, some inside others, one of a single level, one constant.
inline Network mixed_network(double zeros, std::uint64_t seed) {
  return RandomNetwork{
      {2, 3, 1, 2, 4},  {{0, 1}, {1, 3, 4}, {4}, {3, 1}, {2, 0}, {}, {0, 4}, {1, 0}, {2}}, 1.5, zeros, seed,
      {{0, 2, 0, 0, 0}}}
      .make();
}

/// A binary variable with nine neighbours: its affected moves overflow a chunk of eight.
inline Network hub_network(double zeros, std::uint64_t seed) {
  RandomNetwork recipe{std::vector<Index>(10, 2), {{1, 2, 3}, {7, 2}}, 1.0, zeros, seed, {}};
  for (Index j = 1; j < 10; ++j) recipe.scopes.push_back({j % 2 == 0 ? Index{0} : j, j % 2 == 0 ? j : Index{0}});
  return recipe.make();
}

/// The mixed network with x[1] seen at its last level and x[0] at its first.
inline Network mixed_network_with_evidence(double zeros, std::uint64_t seed) {
  return condition(mixed_network(zeros, seed), {{1, 2}, {0, 0}});
}

}  // namespace poise::testing
