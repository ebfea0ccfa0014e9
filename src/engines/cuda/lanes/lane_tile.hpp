/// Chains across lanes, on a GPU: those of engines/cpu/lanes/lane_tile.hpp with a thread for every variable of a
/// colour and two chains.
///
/// Random words are those of the CPU, and floats decide only where they cannot be wrong, so the states are the same.
/// The rest, one update in a hundred thousand or so, is decided by the same integers and an exponential in doubles,
/// which may differ from the CPU's in the last digit: one update in 10^16 or so.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <poise/extend/engines/engine.hpp>
#include "engines/cpu/lanes/lane_image.hpp"
#include "engines/cpu/lanes/lane_model.hpp"
#include "engines/cpu/lanes/lane_tile.hpp"
#include "models/ising/graph_ising.hpp"
#include "models/network/markov_network.hpp"

namespace poise {

namespace cuda {
struct LaneRecord;
}

/// How log p is added up: factor by factor, as networks have it, or in integers, which takes a model without zeros, as
/// Ising models are.
enum class CudaLogSums { in_order, in_integers };

/// What a tile is made from.
struct CudaLaneModel {
  std::shared_ptr<const LaneModel> model;
  ExactTables exact;
  std::vector<Value> reference;  ///< by position
  CudaLogSums log_sums = CudaLogSums::in_order;
};

/// Sums of the states of all chains of a group.
struct CudaLaneSums {
  std::span<const double> units;             ///< of log p
  std::span<const std::uint32_t> different;  ///< variables that are not as in the reference
  /// Those at level 1 where log p is summed in integers, otherwise those at the most frequent level.
  std::span<const std::uint32_t> at_level;
};

class CudaLaneTile {
 public:
  using Totals = LaneTotals;

  /// Where levels are while chains move: in the memory of multiprocessors, for many sweeps at a time, or in that of the
  /// device, so that the variables of a colour may be anywhere. What is faster is chosen by default.
  enum class Placement { automatic, resident, spread };

  /// The chains first_chain + group.first and so on; numbers are those of the run. Throws an InputError where the GPU
  /// has too little memory.
  CudaLaneTile(std::shared_ptr<const CudaLaneModel> model, ChainGroup group, std::uint64_t seed,
               std::uint64_t first_chain, Placement placement = Placement::automatic);
  ~CudaLaneTile();
  CudaLaneTile(CudaLaneTile&&) noexcept;
  CudaLaneTile& operator=(CudaLaneTile&&) noexcept;

  [[nodiscard]] ChainGroup group() const { return group_; }
  [[nodiscard]] std::uint64_t sweeps() const { return sweeps_; }
  [[nodiscard]] TileProgress progress() const { return {sweeps_, counting_ ? 1U : 0U, averaging_ ? 1U : 0U}; }
  /// Totals start anew.
  void set_progress(const TileProgress& progress);

  /// Counts levels while `reset_counts` was called, and averages conditionals while `reset_sums` was. Returns when the
  /// sweeps are made.
  void sweep(std::uint64_t sweeps);
  void reset_counts();
  void reset_sums();
  [[nodiscard]] bool counts() const { return counting_; }
  [[nodiscard]] bool averages() const { return averaging_; }

  // One chain of the run; other threads may set and get other chains at the same time, while none sweeps.
  void set_levels(std::size_t chain, std::span<const Value> levels);
  void get_levels(std::size_t chain, std::span<Value> levels) const;
  void set_totals(std::size_t chain, const LaneTotals& totals);
  [[nodiscard]] LaneTotals get_totals(std::size_t chain) const;
  void get_counts(std::size_t chain, std::span<std::uint64_t> counts) const;
  void get_sums(std::size_t chain, std::span<double> sums) const;

  // All chains of the group, in one go.
  /// Good until the next ones are asked for.
  [[nodiscard]] CudaLaneSums sums() const;
  /// The same `draws` times, each after so many sweeps: calls use(draw, sums), on any thread and in any order.
  void sweep_and_sum(std::uint64_t sweeps, std::size_t draws,
                     const std::function<void(std::size_t draw, const CudaLaneSums& sums)>& use);
  /// Chain after chain.
  void get_all_levels(std::span<Value> levels) const;

 private:
  class OnDevice;
  /// Without waiting for them; what is recorded goes to where `record` says.
  void start_sweeps(std::uint64_t sweeps, const cuda::LaneRecord& record);
  [[nodiscard]] std::uint32_t lane(std::size_t chain) const;

  std::shared_ptr<const CudaLaneModel> model_;
  ChainGroup group_{};
  std::uint64_t first_chain_ = 0;
  bool counting_ = false;
  bool averaging_ = false;
  std::uint64_t sweeps_ = 0;
  std::unique_ptr<OnDevice> device_;
};

// What is told of chains, from sums that were made on the device.

[[nodiscard]] constexpr CudaLogSums log_sums_of(const MarkovNetwork&) { return CudaLogSums::in_order; }
[[nodiscard]] constexpr CudaLogSums log_sums_of(const GraphIsing&) { return CudaLogSums::in_integers; }

inline void observe_states(const MarkovNetwork& target, const CudaLaneSums& sums, const Observables& out) {
  for (std::size_t k = 0; k < out.log_prob.size(); ++k) out.log_prob[k] = target.log_prob_of(sums.units[k]);
  if (out.statistics.empty()) return;
  // Finding an order looks at all variables, and many chains have the same.
  std::vector<double> known(target.num_variables() + std::size_t{1}, -1.0);
  for (std::size_t k = 0; k < sums.at_level.size(); ++k) {
    double& order = known[sums.at_level[k]];
    if (order < 0.0) order = target.order(sums.at_level[k]);
    out.statistics[k] = order;
  }
}

inline void observe_states(const GraphIsing& target, const CudaLaneSums& sums, const Observables& out) {
  GraphIsing::State summed;
  for (std::size_t k = 0; k < sums.units.size(); ++k) {
    summed.log_prob = static_cast<std::int64_t>(sums.units[k]);
    summed.magnetization = 2 * std::int64_t{sums.at_level[k]} - static_cast<std::int64_t>(target.num_variables());
    if (!out.log_prob.empty()) out.log_prob[k] = target.log_prob(summed);
    if (!out.statistics.empty()) target.statistics(summed, out.statistics.subspan(k, 1));
  }
}

/// log p, statistics and distances of chains.
template <class T>
void observe_sums(const T& target, const CudaLaneSums& sums, const Observables& out) {
  observe_states(target, sums, out);
  if (!out.distance.empty()) std::copy(sums.different.begin(), sums.different.end(), out.distance.begin());
}

/// Draws that are asked for at once: several batches, as long as numbers of all chains take some megabytes.
[[nodiscard]] inline std::size_t lane_draws_at_once(std::size_t chains) {
  return std::clamp<std::size_t>((std::size_t{1} << 20) / std::max<std::size_t>(1, chains), 1, 512);
}

}  // namespace poise
