/// Replica exchange across lanes: ladders of temperatures whose neighbours exchange states.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "inference/optimize/spin_annealing.hpp"

namespace poise {

/// The cold end of a ladder is a descent that never gets stuck for good, because states keep coming from where
/// everything moves. Where states are far worse than those that a random state climbs to, nothing is learnt, so the
/// hot end is not much above that: conflicts at a high price would set it otherwise. On random graphs, where crossover
/// finds one component only, this is the better search. At first temperatures move so that all neighbours exchange
/// equally often, and where they do so more often than necessary, a ladder becomes two shorter ones.
class ReplicaExchange {
 public:
  ReplicaExchange(const SpinProblem& problem, TemperatureRange range, std::uint64_t seed, std::uint64_t number);

  /// Puts a state at the cold end of a ladder.
  void start_from(std::span<const Spin> spins);
  void round(SearchRecord& record);
  [[nodiscard]] const Champion& champion() const { return champion_; }
  [[nodiscard]] unsigned rungs() const { return rungs_; }

  void save(Saver& out) {
    archive(out);
    lanes_->save(out);
  }
  void load(Loader& in) {
    archive(in);
    lanes_->load(in);
  }

 private:
  template <class A>
  void archive(A& archive) {
    archive(rungs_, ladder_, rates_, attempts_, adaptations_, best_, champion_, parity_, next_, rng_);
  }
  void exchange();
  void adapt();
  [[nodiscard]] unsigned hottest_useful() const;
  void apply_ladder();
  void harvest(SearchRecord& record);

  const SpinProblem* problem_;
  std::unique_ptr<SpinLanes> lanes_;
  Crossover crossover_;
  double climbed_;  // mean value that random states climb to
  unsigned rungs_;
  std::vector<double> ladder_;    // temperatures from cold to hot
  std::vector<double> rates_;     // sums of the probabilities to exchange, by the lower rung
  std::vector<double> attempts_;  // and how many they are
  unsigned adaptations_ = 0;
  std::int64_t best_;  // value that lanes have reached
  Champion champion_;
  unsigned parity_ = 0;
  unsigned next_ = 0;  // lane to be harvested
  Rng rng_;
};

}  // namespace poise
