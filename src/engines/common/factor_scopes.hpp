/// The variables of each factor of a network, with their strides in its table.
#pragma once

#include <span>
#include <vector>

#include "models/network/markov_network.hpp"

namespace poise {

struct FactorScopes {
  struct Site {
    Index variable;
    std::uint32_t stride;
  };

  explicit FactorScopes(const MarkovNetwork& target);
  /// The same with a layout's positions in place of variables.
  FactorScopes(const MarkovNetwork& target, std::span<const Index> position);

  [[nodiscard]] std::span<const Site> operator[](std::size_t factor) const {
    return {sites.data() + start[factor], start[factor + 1] - start[factor]};
  }
  /// Entries of the factor's table.
  [[nodiscard]] std::size_t entries(const MarkovNetwork& target, std::size_t factor) const;

  std::vector<std::size_t> start;
  std::vector<Site> sites;
};

/// The smallest entry of each factor's table that is no zero, in units.
[[nodiscard]] std::vector<std::int64_t> lowest_units(const MarkovNetwork& target, const FactorScopes& scopes);

}  // namespace poise
