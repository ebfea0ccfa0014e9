/// Draws of chains across lanes on the device: their states side by side, sums of these for the host, and what is told
/// of chains from such sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <poise/extend/engines/engine.hpp>
#include "engines/cuda/common/draw_batches.hpp"
#include "engines/cuda/common/launch_graph.hpp"
#include "engines/cuda/lanes/lane_memory.hpp"
#include "models/ising/graph_ising.hpp"
#include "models/network/markov_network.hpp"

namespace poise {

/// Sums of the states of all chains of a group.
struct CudaLaneSums {
  std::span<const double> units;             ///< of log p
  std::span<const std::uint32_t> different;  ///< variables that are not as in the reference
  /// Those at level 1 where log p is summed in integers, otherwise those at the most frequent level.
  std::span<const std::uint32_t> at_level;
};

/// Calls use(draw, sums), on any thread and in any order.
using UseLaneSums = std::function<void(std::size_t draw, const CudaLaneSums& sums)>;

namespace cuda {

class LaneRecording {
 public:
  /// Records states that have a row for each variable, [position][lane]; `lanes` says which of them are chains.
  LaneRecording(const ModelOnDevice& model, LaneBatch lanes)
      : model_(model),
        lanes_(lanes),
        draws_(std::clamp<std::size_t>(
            std::min(kStateBytes / std::max<std::size_t>(1, bytes()), kFoundBytes / DrawSums::size(lanes.lanes)), 1,
            kMostDraws)) {
    make_room(1);
  }

  /// Draws of a batch: as many as take little memory.
  [[nodiscard]] std::size_t draws() const { return draws_; }
  /// Bytes of a state.
  [[nodiscard]] std::size_t bytes() const { return std::size_t{model_.variables()} * lanes_.lanes; }
  /// Room for the states of a batch, one after the other.
  [[nodiscard]] std::uint8_t* states() {
    if (states_.empty()) states_ = Array<std::uint8_t>(draws_ * bytes());
    return states_.data();
  }

  /// Has the device sum so many states, one after the other, once it has made them; a batch takes the
  /// slot of the one kSlots before.
  void start(const std::uint8_t* states, std::size_t draws, std::size_t batch) {
    const std::size_t slot = batch % kSlots * (found_.size() / kSlots);
    const SumsOfDraws view{.exact = model_.exact(),
                           .factors = model_.factors(),
                           .states = states,
                           .bytes = bytes(),
                           .draws = static_cast<std::uint32_t>(draws),
                           .lanes = lanes_.lanes,
                           .positions = model_.variables(),
                           .most_levels = model_.most_levels(),
                           .reference = model_.reference(),
                           .out = {found_.data() + slot, lanes_.lanes}};
    if (model_.log_sums() == CudaLogSums::in_integers) {
      launch_sums_in_integers(view);
    } else {
      launch_sums_in_order(view);
    }
    check_launch("states were summed");
    summed_[batch % kSlots].record(nullptr);
    summed_[batch % kSlots].hold(copying_);
    check(cudaMemcpyAsync(host_.get() + slot, found_.data() + slot, draws * DrawSums::size(lanes_.lanes),
                          cudaMemcpyDeviceToHost, copying_),
          "sums were copied from it");
    done_[batch % kSlots].record(copying_);
  }
  void wait(std::size_t batch) { done_[batch % kSlots].wait("states were summed"); }
  /// Sums of a draw of a batch that was waited for.
  [[nodiscard]] CudaLaneSums sums(std::size_t batch, std::size_t draw) const {
    const DrawSums all{host_.get() + batch % kSlots * (found_.size() / kSlots), lanes_.lanes};
    return {{all.units(draw) + lanes_.first, lanes_.count},
            {all.different(draw) + lanes_.first, lanes_.count},
            {all.at_level(draw) + lanes_.first, lanes_.count}};
  }
  /// Those of one state.
  [[nodiscard]] CudaLaneSums sums_of(const std::uint8_t* state) {
    start(state, 1, 0);
    wait(0);
    return sums(0, 0);
  }

  /// So many draws, in batches that start(batch, size) has the device begin with.
  void run(std::size_t draws, const std::function<void(std::size_t batch, std::size_t size)>& start,
           const UseLaneSums& use) {
    if (!batches_) {
      make_room(draws_);
      batches_ = std::make_unique<DrawBatches>(kSlots);
    }
    batches_->run(draws, draws_,
                  {.start = start,
                   .wait = [&](std::size_t batch) { wait(batch); },
                   .use = [&](std::size_t batch, std::size_t draw) { use(batch * draws_ + draw, sums(batch, draw)); }});
  }

 private:
  /// Draws up to which a batch is worth while.
  static constexpr std::size_t kMostDraws = 64;
  static constexpr std::size_t kStateBytes = std::size_t{64} << 20;
  /// Bytes that are fetched together: the caches of the host have room for them.
  static constexpr std::size_t kFoundBytes = std::size_t{4} << 20;

  void make_room(std::size_t draws) {
    found_ = Array<unsigned char>(kSlots * draws * DrawSums::size(lanes_.lanes));
    host_ = pinned<unsigned char>(found_.size());
  }

  const ModelOnDevice& model_;
  LaneBatch lanes_;
  std::size_t draws_;
  Array<std::uint8_t> states_;
  static constexpr std::size_t kSlots = 2;  // of batches
  Array<unsigned char> found_;              // [slot]
  PinnedArray<unsigned char> host_;
  CudaStream copying_{StreamOrder::apart};  // while the device works in the default stream
  Event summed_[kSlots];
  Event done_[kSlots];
  std::unique_ptr<DrawBatches> batches_;
};

}  // namespace cuda

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
