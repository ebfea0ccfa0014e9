/// One chain of the search: annealing, exact moves of large parts, and crossing with its own best state.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include "base/thread_pool.hpp"
#include "inference/network_search/annealing.hpp"
#include "inference/network_search/part.hpp"

namespace poise::network_search {

/// What ends a search from outside.
struct Halt {
  Clock::time_point deadline = Clock::time_point::max();
  const std::atomic<bool>* stop = nullptr;

  [[nodiscard]] bool now() const {
    return (stop != nullptr && stop->load()) || (deadline != Clock::time_point::max() && Clock::now() >= deadline);
  }
};

/// A state and the sum of its factors.
struct Scored {
  std::vector<Value> x;
  double value = 0.0;
};

/// Puts each variable in which two states differ at the level of one of them, the best for all together: exact where
/// what they differ in has small width, and never worse than the better one. Variables that no factor joins through
/// others in which the states differ are decided apart from each other, so this holds the partition crossover of all
/// components.
[[nodiscard]] Scored cross(const LogNetwork& network, Part& part, const Scored& a, const Scored& b,
                           const PartLimits& limits, Rng& rng);

/// Entries of the largest table of a crossing.
inline constexpr double kCrossing = 65536.0;

/// Entries of all tables of a part at most.
inline constexpr double kMostEntries = 4e6;

class Chain {
 public:
  Chain(const LogNetwork& network, const Annealer& annealer, Rng rng, double most_entries);

  /// Begins at a state, which stays the best until there is a better one.
  void start_at(Scored state);
  /// A best state from elsewhere, for the first annealing, from a random state, to be crossed with.
  void remember(Scored state) { best_ = std::move(state); }
  /// Works until it has looked at so many table entries, or is told to halt. There is a best state afterwards.
  void advance(double looks, const Halt& halt);

  [[nodiscard]] bool has_best() const { return !best_.x.empty(); }
  [[nodiscard]] const Scored& best() const { return best_; }
  /// Where exact moves led to nothing better, since the last call.
  [[nodiscard]] std::vector<Scored> take_ends() { return std::exchange(ends_, {}); }
  [[nodiscard]] double looks() const { return looks_; }

 private:
  double anneal(const Halt& halt);
  double improve();
  void choose_region(std::size_t count);

  const LogNetwork& network_;
  const Annealer& annealer_;
  Rng rng_;
  double most_entries_;
  Part part_;
  Scored now_;
  Scored best_;
  std::vector<Scored> ends_;
  std::size_t width_ = 0;     ///< how large the tables of the next move may be
  std::size_t failures_ = 0;  ///< moves of that width in a row that gained nothing
  bool at_end_ = true;        ///< annealing is next
  bool fresh_ = true;         ///< the first one
  bool many_levels_ = false;
  double looks_ = 0.0;
  std::vector<Choice> choices_;
  std::vector<Index> region_;
  std::vector<std::uint64_t> seen_;
  std::uint64_t stamp_ = 0;
};

}  // namespace poise::network_search
