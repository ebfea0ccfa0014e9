/// Parallel tempering: a ladder of rungs from the hot end, beta = 0, to the distribution itself, beta = 1.
///
/// Each rung has a replica. Neighbours swap in turn, even pairs at even steps and odd ones at odd steps, so that a
/// replica that has begun to move keeps its direction (non-reversible tempering: Okabe et al. 2001; Syed et al. 2022).
/// Everything follows from one function of a pair k of rungs and a replica x, its gain: log p_{k+1}(x) - log p_k(x). A
/// swap of the pair is accepted with probability min{1, exp(gain of the one below - gain of the one above)}.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include <poise/extend/base/rng.hpp>

namespace poise {

/// How likely two neighbours are to swap, by their gains.
[[nodiscard]] inline double swap_probability(double gain_below, double gain_above) {
  const double log_ratio = gain_below - gain_above;
  return log_ratio < 0.0 ? std::exp(log_ratio) : 1.0;
}

/// What was seen of swaps, pair by pair.
struct SwapCounts {
  std::vector<double> accepted;  ///< probabilities, summed
  std::vector<std::uint64_t> tried;

  explicit SwapCounts(std::size_t rungs = 1) : accepted(rungs - 1, 0.0), tried(rungs - 1, 0) {}
  void add(const SwapCounts& more);
  /// Mean rejection of each pair; 1 where no swap was tried.
  [[nodiscard]] std::vector<double> rejections() const;

  template <class A>
  void archive(A& archive) {
    archive(accepted, tried);
  }
};

/// Sums of Bennett's ratio, pair by pair, at the lower rung and at the upper one.
struct BridgeNumbers {
  std::vector<double> below;
  std::vector<double> above;
  double count = 0.0;  ///< of states in each of them
};

/// Ratios of normalising constants of neighbouring rungs by Bennett's acceptance ratio, in one pass.
///
/// For any C, Z_{k+1} / Z_k = e^C <f(gain - C)>_k / <f(C - gain)>_{k+1} with f(t) = 1 / (1 + e^-t), and C near the
/// answer is the best one: that of the round before.
class BridgeSums {
 public:
  explicit BridgeSums(std::vector<double> guesses = {});

  void add_below(std::size_t pair, double gain) { add(below_[pair], gain - guesses_[pair]); }
  void add_above(std::size_t pair, double gain) { add(above_[pair], guesses_[pair] - gain); }
  /// Takes in what others have seen with the same guesses.
  void add(const BridgeSums& more);
  /// log Z_{k+1} - log Z_k for every pair; the guess where one side was never seen, infinite where they do not overlap.
  [[nodiscard]] std::vector<double> log_ratios() const;
  /// Where both sides are always added to together.
  [[nodiscard]] BridgeNumbers numbers() const;
  void set_numbers(const BridgeNumbers& numbers);

  template <class A>
  void archive(A& archive) {
    archive(guesses_, below_, above_);
  }

 private:
  struct Side {
    double sum = 0.0;
    double count = 0.0;
  };
  static void add(Side& side, double t) {
    side.sum += 1.0 / (1.0 + std::exp(-t));
    side.count += 1.0;
  }

  std::vector<double> guesses_;
  std::vector<Side> below_;
  std::vector<Side> above_;
};

/// The rungs that some replicas were at, for a picture: at most some hundred points, whatever the length of the run.
class ReplicaPaths {
 public:
  static constexpr std::size_t kReplicas = 4;
  static constexpr std::size_t kMost = 512;

  ReplicaPaths() = default;
  /// From the rungs of all points, kReplicas each.
  ReplicaPaths(std::uint64_t stride, std::vector<std::uint32_t> rungs) : stride_(stride), rungs_(std::move(rungs)) {}

  void add(std::uint64_t step, std::span<const std::uint32_t> rung_of);
  void clear() { *this = {}; }
  [[nodiscard]] std::size_t size() const { return rungs_.size() / kReplicas; }
  [[nodiscard]] std::uint32_t rung(std::size_t point, std::size_t replica) const {
    return rungs_[point * kReplicas + replica];
  }
  [[nodiscard]] std::uint64_t stride() const { return stride_; }  ///< steps between two points

  template <class A>
  void archive(A& archive) {
    archive(stride_, rungs_);
  }

 private:
  std::uint64_t stride_ = 1;
  std::vector<std::uint32_t> rungs_;  // [point][replica]
};

/// All that swaps of a ladder change.
struct LadderNumbers {
  std::vector<std::uint32_t> replica_at;     ///< of each rung
  std::vector<std::uint8_t> came_from_cold;  ///< of each replica: 1 on its way down, 2 on its way back up
  SwapCounts counts;
  BridgeNumbers bridges;
  std::uint64_t round_trips = 0;
};

/// Which replica of one ladder is at which rung, and what its swaps tell.
class Ladder {
 public:
  explicit Ladder(std::size_t rungs = 1);

  [[nodiscard]] std::size_t rungs() const { return replica_at_.size(); }
  [[nodiscard]] std::uint32_t replica_at(std::size_t rung) const { return replica_at_[rung]; }
  [[nodiscard]] std::uint32_t rung_of(std::size_t replica) const { return rung_of_[replica]; }
  /// The replica whose states are draws.
  [[nodiscard]] std::uint32_t cold() const { return replica_at_.back(); }

  /// Tries the swaps of a step. `gain(pair, replica)` is log p_{pair+1} - log p_pair of the replica's state; `swapped`
  /// is told the pair after each swap made.
  template <class Gain, class Swapped>
  void swap(std::uint64_t step, Rng& rng, Gain&& gain, Swapped&& swapped) {
    for (std::size_t pair = step % 2; pair + 1 < rungs(); pair += 2) {
      const double probability = swap_probability(gain(pair, replica_at_[pair]), gain(pair, replica_at_[pair + 1]));
      counts_.accepted[pair] += probability;
      ++counts_.tried[pair];
      if (!(rng.uniform() < probability)) continue;
      exchange(pair);
      swapped(pair);
    }
    finish_step(step);
  }

  /// Adds all replicas to the estimates of the ratios of normalising constants.
  template <class Gain>
  void bridge(Gain&& gain) {
    for (std::size_t pair = 0; pair + 1 < rungs(); ++pair) {
      bridges_.add_below(pair, gain(pair, replica_at_[pair]));
      bridges_.add_above(pair, gain(pair, replica_at_[pair + 1]));
    }
  }

  [[nodiscard]] const SwapCounts& counts() const { return counts_; }
  [[nodiscard]] const BridgeSums& bridges() const { return bridges_; }
  [[nodiscard]] const ReplicaPaths& paths() const { return paths_; }
  /// Ways of a replica from the hot end to the cold one and back. Many of them prove nothing: replicas that carry the
  /// same few modes up and down have as many as any.
  [[nodiscard]] std::uint64_t round_trips() const { return round_trips_; }

  // For ladders whose swaps are made on a device.

  [[nodiscard]] LadderNumbers numbers() const;
  void set_numbers(const LadderNumbers& numbers);
  /// Adds to the paths where replicas are after a step.
  void follow(std::uint64_t step, std::span<const std::uint32_t> rung_of) { paths_.add(step, rung_of); }

  /// Forgets what was counted; `guesses` of the logarithms of ratios of neighbouring normalising constants.
  void restart_counts(const std::vector<double>& guesses);

  template <class A>
  void archive(A& archive) {
    archive(replica_at_, rung_of_, came_from_cold_, counts_, bridges_, paths_, round_trips_);
  }

 private:
  void exchange(std::size_t pair);
  void finish_step(std::uint64_t step);

  std::vector<std::uint32_t> replica_at_;
  std::vector<std::uint32_t> rung_of_;
  std::vector<std::uint8_t> came_from_cold_;  // of each replica: 1 on its way down, 2 on its way back up
  SwapCounts counts_;
  BridgeSums bridges_;
  ReplicaPaths paths_;
  std::uint64_t round_trips_ = 0;
};

/// Inverse temperatures to begin with: dense near both ends. Those of every ladder are rounded to twenty binary digits.
[[nodiscard]] std::vector<double> first_betas(std::size_t rungs);

/// The ladder of `rungs` rungs whose pairs would all reject alike: cut where the cumulative rejection, interpolated
/// between `betas`, has risen by equal parts.
[[nodiscard]] std::vector<double> equal_rejection(std::span<const double> betas, std::span<const double> rejections,
                                                  std::size_t rungs);

/// Sum of the rejections: the communication barrier between the two ends, whatever the number of rungs.
[[nodiscard]] double barrier_of(std::span<const double> rejections);

/// Rungs that a barrier asks for: more make a round trip no faster per unit of work.
[[nodiscard]] std::size_t rungs_for(double barrier);

/// What ladders tell of a run.
///
/// With one rung nothing was left to sample after variables were summed out: draws are independent and log Z is exact.
struct TemperingReport {
  std::vector<double> betas;
  std::vector<double> acceptance;  ///< of swaps of each pair of neighbours, over all ladders
  double barrier = 0.0;
  std::uint64_t round_trips = 0;  ///< of all replicas of all ladders
  std::uint64_t steps = 0;        ///< of each ladder
  std::size_t ladders = 0;
  ReplicaPaths paths;  ///< of the first ladder
  /// log Z of the distribution that is sampled, if that of the hot end is known; not a number otherwise. The error is
  /// that of the mean over ladders, widened by Student's t since they are few; not a number with one of them.
  double log_partition = 0.0;
  double log_partition_error = 0.0;
  std::vector<double> log_partition_by_ladder;
  /// Components that two ladders differ in, on average, where these were exchanged; 0 where they were not.
  double components = 0.0;
};

}  // namespace poise
