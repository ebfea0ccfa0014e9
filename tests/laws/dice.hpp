/// The random choices behind a model: a stream of its own for every number of a model, so that any of them can be made
/// again alone.
#pragma once

#include <cstdint>
#include <initializer_list>

#include <poise/extend/base/rng.hpp>
#include <poise/types.hpp>

namespace poise::laws {

class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t model) : rng_(seed, model) {}

  double uniform(double low, double high) { return low + (high - low) * rng_.uniform(); }
  double normal() { return rng_.normal(); }
  bool chance(double probability) { return rng_.uniform() < probability; }
  /// Of 0 .. count-1.
  Index below(std::size_t count) { return static_cast<Index>(rng_.uniform() * static_cast<double>(count)); }
  /// Both ends included.
  Index between(Index low, Index high) { return low + below(high - low + 1); }
  template <class T>
  T pick(std::initializer_list<T> options) {
    return options.begin()[below(options.size())];
  }
  std::uint64_t seed() { return below(1U << 30U); }

  /// How strong couplings are: from a distribution that is flat up to rounding of draws, over the region where chains
  /// still mix, to one where they freeze.
  double strength() { return pick({0.01, 0.1, 0.3, 0.5, 0.8, 1.2, 2.0, 4.0, 7.0}); }

 private:
  Rng rng_;
};

}  // namespace poise::laws
