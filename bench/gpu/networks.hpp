/// Networks for timing, of the shape of those of the UAI competitions.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/network.hpp>

/// A Bayesian network of two-valued variables like BN_1 of UAI 2006: as many variables have as many parents, each of
/// them drawn among those before, and tables of random probabilities. `copies` of it side by side have more variables.
inline poise::Network like_bn1(poise::Index copies, poise::Index levels = 2) {
  using poise::Index;
  // Variables that have 0, 1, 2, ... parents: 100 in all.
  constexpr Index with_parents[] = {14, 27, 27, 18, 8, 3, 3};
  poise::Network network;
  network.name = "like BN_1";
  poise::Rng rng(1, 9);
  for (Index copy = 0; copy < copies; ++copy) {
    std::vector<Index> parents;
    for (Index count = 0; count < std::size(with_parents); ++count) {
      parents.insert(parents.end(), with_parents[count], count);
    }
    // Those without parents first; the others in random order, but for the first few, which have few to choose from.
    for (std::size_t k = parents.size(); k > 50; --k) {
      const auto other = static_cast<std::size_t>(41 + rng.uniform() * static_cast<double>(k - 41));
      std::swap(parents[k - 1], parents[other]);
    }
    const auto first = static_cast<Index>(network.cardinalities.size());
    network.cardinalities.resize(first + parents.size(), levels);
    for (Index i = 0; i < parents.size(); ++i) {
      std::vector<Index> scope;
      while (scope.size() < parents[i]) {
        const Index other = first + static_cast<Index>(rng.uniform() * i);
        if (std::find(scope.begin(), scope.end(), other) == scope.end()) scope.push_back(other);
      }
      scope.push_back(first + i);
      std::size_t rows = 1;
      for (std::size_t k = 0; k + 1 < scope.size(); ++k) rows *= levels;
      std::vector<double> table(rows * levels);
      for (std::size_t row = 0; row < rows; ++row) {
        double sum = 0.0;
        for (Index v = 0; v < levels; ++v) sum += table[row * levels + v] = 0.02 + rng.uniform();
        for (Index v = 0; v < levels; ++v) table[row * levels + v] /= sum;
      }
      network.add_factor(scope, table);
    }
  }
  return network;
}
