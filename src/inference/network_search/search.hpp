/// The search for a most probable state: chains by themselves, and a champion that is crossed with each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "inference/network_search/chain.hpp"

namespace poise::network_search {

/// As many for any number of threads: they are part of what an answer depends on.
inline constexpr std::size_t kChains = 8;

struct SearchOptions {
  std::optional<double> sweeps;  ///< of each chain; nothing: until the halt
  Halt halt;
  std::optional<double> target;  ///< of the sum of all factors
  std::size_t solutions = 1;
  double memory = 1073741824.0;  ///< bytes of tables, of all chains together
  std::uint64_t seed = 1;
  unsigned threads = 0;
  /// Called after each round with the best state so far, sweeps of a chain, and the fraction of the work that is done.
  /// False ends the search.
  std::function<bool(const Scored& best, double sweeps, double done)> progress;
};

struct Found {
  Scored state;
  std::uint64_t count = 1;  ///< how often the search ended there
};

/// The best different states that were found, best first, at least one. `starts` are given states. With a limit of
/// sweeps the answer depends on the seed alone.
[[nodiscard]] std::vector<Found> search(const LogNetwork& network, const std::vector<std::vector<Value>>& starts,
                                        const SearchOptions& options);

}  // namespace poise::network_search
