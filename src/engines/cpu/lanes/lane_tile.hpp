/// Chains across lanes: up to 64 chains that one thread moves on, sweep after sweep of Gibbs.
///
/// All chains of the tile update a variable together: its terms and their tables are read once for all, only levels
/// and random numbers differ. A chain's random numbers are a function of the seed, its number, the sweep and the
/// variable, so what it does does not depend on its company.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <poise/extend/engines/engine.hpp>
#include "engines/cpu/lanes/lane_model.hpp"

namespace poise {

struct LaneSweep;

/// What was counted of one chain, by variable and level above 0.
struct LaneTotals {
  std::vector<std::uint64_t> counts;  ///< sweeps at the level
  std::vector<double> sums;           ///< of P(variable at level | all others)
  std::vector<float> recent;          ///< more of these, not yet added

  template <class A>
  void archive(A& archive) {
    archive(counts, sums, recent);
  }
};

class LaneTile {
 public:
  using Totals = LaneTotals;
  static constexpr std::size_t kVector = 16;  ///< chains that share a vector; up to half of them share half a one
  static constexpr std::size_t kMost = 64;
  static constexpr std::size_t kFew = 2;  ///< chains, up to which each is better off alone

  /// The chains first_chain + group.first and so on; numbers are those of the run.
  LaneTile(std::shared_ptr<const LaneModel> model, ChainGroup group, std::uint64_t seed, std::uint64_t first_chain);

  [[nodiscard]] ChainGroup group() const { return group_; }
  [[nodiscard]] std::uint64_t sweeps() const { return sweeps_; }
  [[nodiscard]] TileProgress progress() const { return {sweeps_, counts() ? 1U : 0U, averages() ? 1U : 0U}; }
  /// Totals start anew.
  void set_progress(const TileProgress& progress);
  [[nodiscard]] const LaneModel& model() const { return *model_; }
  /// Levels, [position][lane].
  [[nodiscard]] const Value* levels() const { return levels_.data(); }
  [[nodiscard]] std::size_t lanes() const { return lanes_; }
  [[nodiscard]] std::size_t lane(std::size_t chain) const {
    return static_cast<std::size_t>(first_chain_ + chain - first_number_);
  }

  /// Counts levels while `reset_counts` was called, and averages conditionals while `reset_sums` was.
  void sweep(std::uint64_t sweeps);
  void reset_counts();
  void reset_sums();
  [[nodiscard]] bool counts() const { return !earlier_counts_.empty(); }
  [[nodiscard]] bool averages() const { return !earlier_sums_.empty(); }

  /// Gives a lane a temperature of its own; `counts` says whether its conditionals go into the sums. Of a model with
  /// soft zeros, and in tiles of at least sixteen lanes.
  void heat(std::size_t lane, const LaneHeat& heat, bool counts);

  /// Exchanges the levels that a lane and one of another tile have at a position.
  void exchange(Index position, std::size_t lane, LaneTile& other, std::size_t other_lane) {
    std::swap(levels_[position * lanes_ + lane], other.levels_[position * other.lanes_ + other_lane]);
  }

  // For one chain of the run; other threads may handle other chains at the same time.
  void set_levels(std::size_t chain, std::span<const Value> levels);
  void get_levels(std::size_t chain, std::span<Value> levels) const;
  void set_totals(std::size_t chain, const LaneTotals& totals);
  [[nodiscard]] LaneTotals get_totals(std::size_t chain) const;
  void get_counts(std::size_t chain, std::span<std::uint64_t> counts) const;
  void get_sums(std::size_t chain, std::span<double> sums) const;

  /// All levels of the chains of the group, chain after chain.
  void get_all_levels(std::span<Value> levels) const;
  /// The same as bits, every chain from a byte of its own on; all variables have two levels.
  void get_all_bits(std::span<std::uint8_t> bits) const;

 private:
  static void settle(const LaneSweep& sweep, std::size_t position, std::uint64_t unsure);
  void settle_lane(std::size_t position, std::size_t lane);
  void spill_counts();
  void spill_sums();
  template <class Use>
  void for_each_entry(Use&& use) const;

  std::shared_ptr<const LaneModel> model_;
  ChainGroup group_;
  std::uint64_t first_chain_;
  std::uint64_t first_number_;  // of lane 0
  std::size_t lanes_;
  bool alone_;                             // each lane draws its own random words
  std::uint64_t chains_;                   // lanes that are chains
  std::vector<std::uint64_t> first_keys_;  // of words, or of lanes where each has its own
  std::vector<std::uint64_t> second_keys_;
  std::vector<std::uint8_t> shifts_;  // to the half of a word that is a lane's
  std::vector<Value> levels_;         // [position][lane]
  std::uint64_t sweeps_ = 0;
  std::vector<std::uint8_t> recent_counts_;  // [entry in the order of updates][lane]
  std::vector<float> recent_sums_;
  std::vector<std::uint64_t> earlier_counts_;
  std::vector<double> earlier_sums_;
  std::vector<LaneHeat> heat_;  // of each lane; empty where none is heated
  std::vector<float> betas_;
  std::vector<float> log_zeros_;
  std::vector<float> weights_;
};

}  // namespace poise
