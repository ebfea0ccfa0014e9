/// What the parts of a search share: what was found, how much was done, and when to stop.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "inference/optimize/solution_pool.hpp"

namespace poise {

struct SearchRecord {
  SolutionPool pool;
  std::uint64_t sweeps = 0;                        ///< of one chain
  std::function<void(const SearchRecord&)> risen;  ///< called when the best value has risen; may be empty
  std::function<bool(std::uint64_t sweeps)> stop;  ///< looked at between two sweeps; may be empty

  void add(std::int64_t value, std::span<const Spin> spins) {
    if (pool.add(value, spins) && risen) risen(*this);
  }
  /// The same for a state that the search may have been at all along: it does not count as another arrival.
  void add_better(std::int64_t value, std::span<const Spin> spins) {
    if (pool.empty() || value > pool.best().value) add(value, spins);
  }
  [[nodiscard]] bool is_over() const { return stop && stop(sweeps); }
};

}  // namespace poise
