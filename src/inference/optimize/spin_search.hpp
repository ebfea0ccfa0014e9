/// The search for the best state of an Ising problem: annealing and replica exchange, whichever gets further.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "inference/optimize/replica_exchange.hpp"
#include "inference/optimize/search_record.hpp"
#include "inference/optimize/spin_annealing.hpp"

namespace poise {

/// Rounds of both kinds take turns. After a while the one whose champion is better has three rounds of four. Where
/// crossover finds one component only, replica exchange has seven of eight.
class SpinSearch {
 public:
  /// The problem must outlive it and have a variable. Searches with another `number` are independent.
  SpinSearch(const SpinProblem& problem, std::uint64_t seed, std::uint64_t number);

  void start_from(std::span<const Spin> spins, SearchRecord& record);
  /// The champion takes what is better in a state of another search.
  void hear_of(std::int64_t value, std::span<const Spin> spins, SearchRecord& record);
  void round(SearchRecord& record);

  void save(Saver& out);
  void load(Loader& in);

 private:
  [[nodiscard]] bool anneals_next() const;

  const SpinProblem* problem_;
  TemperatureRange range_;
  SpinAnnealing annealing_;
  ReplicaExchange exchange_;
  Crossover crossover_;
  Champion champion_;  // of both
  std::uint64_t rounds_ = 0;
  unsigned starts_ = 0;
  Rng rng_;
};

}  // namespace poise
