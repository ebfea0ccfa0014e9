/// Annealing of a network by single variables, zeros at a low price so that they can be passed through.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include "inference/network_search/log_network.hpp"

namespace poise::network_search {

/// A temperature schedule: from hot to cold by equal factors, in units of the model's own scale.
struct Schedule {
  double hot = 2.0;
  double cold = 0.02;
  std::size_t sweeps = 100;
};

/// Heat-bath annealing. Shared by all chains; each has a state of its own.
class Annealer {
 public:
  explicit Annealer(const LogNetwork& network);

  /// Anneals `x` and ends with a descent; `halt` is looked at once in a sweep and ends it early. Gives the effort, in
  /// table entries.
  double run(const Schedule& schedule, std::span<Value> x, Rng& rng, const std::function<bool()>& halt) const;

 private:
  [[nodiscard]] double scale_of(Rng& rng) const;

  const LogNetwork& network_;
  double scale_ = 1.0;  ///< how much a change of one variable usually changes log p
  double zero_ = 0.0;   ///< the price of a zero
  std::vector<double> logs_;
};

}  // namespace poise::network_search
