/// Annealing across lanes, with crossover of every lane with its own best state.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "inference/optimize/crossover.hpp"
#include "inference/optimize/search_record.hpp"
#include "inference/optimize/spin_lanes.hpp"

namespace poise {

/// Temperatures between which a problem can be searched, in the measure of SpinLanes.
struct TemperatureRange {
  double cold = 0.0;                                          ///< almost nothing moves any more
  double hot = 0.0;                                           ///< everything moves
  double climbed = -std::numeric_limits<double>::infinity();  ///< mean value that random states climb to
};

/// Measured at local optima that random states climb to.
[[nodiscard]] TemperatureRange measure_temperatures(const SpinProblem& problem, Rng& rng);

/// The best of all states that a search has seen so far in every component in which they differ.
struct Champion {
  std::vector<Spin> spins;
  std::int64_t value = 0;

  [[nodiscard]] bool empty() const { return spins.empty(); }
  /// Gives whether the state has changed, be it to one as good.
  bool take(std::int64_t other_value, std::span<const Spin> other, Crossover& crossover, Rng& rng);

  template <class A>
  void archive(A& archive) {
    archive(spins, value);
  }
};

/// Each round reheats all lanes, anneals them and crosses every result with the best state of the same lane. Lanes are
/// never crossed with each other, which would make them all alike within a few rounds; only the champion is crossed
/// with all of them. Lanes are reheated to different temperatures, around the one that has brought the most so far.
class SpinAnnealing {
 public:
  SpinAnnealing(const SpinProblem& problem, TemperatureRange range, std::uint64_t seed, std::uint64_t number);

  /// Puts a state in place of the best one of a lane.
  void start_from(unsigned lane, std::span<const Spin> spins);
  void round(SearchRecord& record);
  [[nodiscard]] const Champion& champion() const { return champion_; }
  /// Whether states that were crossed fell apart into components. Where they do not, a round gains nothing from those
  /// before it.
  [[nodiscard]] bool crosses_well() const { return components_ >= 2 * crossings_; }

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
    archive(best_, champion_, reheat_, started_, crossings_, components_, rng_);
  }
  void anneal(SearchRecord& record);
  void cross(SearchRecord& record);

  const SpinProblem* problem_;
  TemperatureRange range_;
  std::unique_ptr<SpinLanes> lanes_;
  Crossover crossover_;
  std::vector<Champion> best_;  // by the lane
  Champion champion_;
  double reheat_;  // temperature around which lanes are reheated
  std::vector<double> from_;
  bool started_ = false;
  std::uint64_t crossings_ = 0;   // of states that differ
  std::uint64_t components_ = 0;  // that they fell apart into
  Rng rng_;
};

}  // namespace poise
