/// A network at every temperature, its zeros softened where it is hot.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <poise/network.hpp>
#include "models/network/markov_network.hpp"

namespace poise {

/// log p_beta(x) = beta E(x) + 5 log(1 - beta) N(x), where N is the number of factors that are zero at x, and E the sum
/// of the others' logarithms and of the smallest positive ones of those.
class SoftenedNetwork {
 public:
  explicit SoftenedNetwork(std::shared_ptr<const Network> network);

  /// Below 1, where it has no zeros.
  [[nodiscard]] Network at(double beta) const;
  /// log p_to(x) - log p_from(x).
  [[nodiscard]] double change(std::span<const Value> x, double from, double to) const;

 private:
  std::shared_ptr<const Network> network_;
  std::vector<double> logs_;   // of all entries; of zeros, what counts in their place
  std::vector<double> zeros_;  // 1 where an entry is zero; empty where none is
};

}  // namespace poise
