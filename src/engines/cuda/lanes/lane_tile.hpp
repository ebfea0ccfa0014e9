/// Chains across lanes, on a GPU: those of engines/cpu/lanes/lane_tile.hpp with a thread for every variable of a
/// colour and two chains.
///
/// Random words are those of the CPU, and floats decide only where they cannot be wrong, so the states are the same.
/// The rest, one update in a hundred thousand or so, is decided by the same integers and an exponential in doubles,
/// which may differ from the CPU's in the last digit: one update in 10^16 or so.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engines/cuda/lanes/lane_memory.hpp"
#include "engines/cuda/lanes/lane_recording.hpp"

namespace poise {

/// What chains and the replicas of ladders have in common.
class CudaLaneStates {
 public:
  [[nodiscard]] std::uint64_t sweeps() const { return sweeps_; }
  [[nodiscard]] TileProgress progress() const { return {sweeps_, counting_ ? 1U : 0U, averaging_ ? 1U : 0U}; }
  /// Totals start anew.
  void set_progress(const TileProgress& progress) {
    sweeps_ = progress.sweeps;
    counting_ = averaging_ = false;
    if (progress.counts != 0) reset_counts();
    if (progress.averages != 0) reset_sums();
  }
  void reset_counts() {
    totals_.reset_counts();
    counting_ = true;
  }
  void reset_sums() {
    totals_.reset_sums();
    averaging_ = true;
  }
  [[nodiscard]] bool counts() const { return counting_; }
  [[nodiscard]] bool averages() const { return averaging_; }

 protected:
  /// Totals are those of so many pairs of lanes.
  CudaLaneStates(const CudaLaneModel& from, std::uint32_t pairs)
      : model_(std::make_unique<cuda::ModelOnDevice>(from)),
        totals_(from.model->num_entries(), pairs),
        device_(cuda::this_device()) {}

  /// number_of(pair) is that of a pair of lanes among all of them, which says what its random words are.
  template <class NumberOf>
  void set_keys(std::uint64_t seed, std::size_t pairs, NumberOf&& number_of) {
    std::vector<cuda::PairKey> all(pairs);
    for (std::size_t p = 0; p < pairs; ++p) {
      const WordKey key = word_key(seed, Stream::lanes, number_of(p));
      all[p] = {key.first, key.second};
    }
    keys_ = cuda::Array<cuda::PairKey>(all);
  }

  [[nodiscard]] cuda::LaneTileView view_of(const cuda::LevelsOnDevice& levels, const cuda::LaneBatch& lanes) const {
    cuda::LaneTileView view = model_->view();
    view.levels = levels.words();
    view.sums = averaging_ ? totals_.sums() : nullptr;
    view.keys = keys_.data();
    view.pairs = lanes.lanes / 2;
    view.first_lane = lanes.first;
    view.end_lane = lanes.first + lanes.count;
    return view;
  }
  [[nodiscard]] cuda::LaneShape shape_of(const cuda::LaneTileView& view) const {
    return {.pairs = view.pairs,
            .rows = view.positions + (view.counts != nullptr ? view.entries : 0U),
            .image_bytes = view.image.size,
            .colours = model_->image().colours};
  }

  /// Launches sweeps: all in one, or colour by colour. States that are recorded from shared memory lack the positions
  /// that no sweep looks at.
  template <bool kHeated>
  void launch_sweeps(const cuda::LaneTileView& view, cuda::LanePlan plan, std::uint32_t count) const {
    if (plan.resident && cuda::launch_resident<kHeated>(view, plan, sweeps_, count)) return;
    const std::vector<std::uint32_t>& colours = model_->image().colours;
    if (plan.resident) plan = cuda::plan_spread({.pairs = view.pairs, .colours = colours});
    for (std::uint32_t k = 0; k < count; ++k) {
      for (std::size_t c = 0; c + 1 < colours.size(); ++c) {
        cuda::launch_colour<kHeated>(view, plan, sweeps_ + k, colours[c], colours[c + 1]);
      }
      if (!view.record.is_due(k)) continue;
      const std::size_t bytes = view.record.words * sizeof(std::uint16_t);
      cuda::check(cudaMemcpyAsync(view.record.slot(k), view.levels, bytes, cudaMemcpyDeviceToDevice, nullptr),
                  "states were recorded");
    }
  }
  /// After they were launched, up to `most_recent` at most: there the CPU adds recent counts and sums to the others, so
  /// that both round alike.
  void note_sweeps(std::uint64_t count) {
    sweeps_ += count;
    if (!counting_ && !averaging_) return;
    totals_.changed(count);
    if (sweeps_ % most_recent() == 0) totals_.spill();
  }
  [[nodiscard]] std::uint64_t most_recent() const {
    return averaging_ ? LaneModel::kMostSummed : LaneModel::kMostCounted;
  }

  using Kept = cuda::LaneTotalsOnDevice::Kept;
  [[nodiscard]] Kept kept() const { return {counting_, averaging_}; }
  [[nodiscard]] LaneTotals totals_of(std::size_t lane, Kept wanted) const {
    const std::lock_guard lock(*mutex_);
    return totals_.get(static_cast<std::uint32_t>(lane), wanted, *model_);
  }
  void set_totals_of(std::size_t lane, const LaneTotals& totals) {
    const std::lock_guard lock(*mutex_);
    totals_.set(static_cast<std::uint32_t>(lane), kept(), *model_, totals);
  }

  std::unique_ptr<cuda::ModelOnDevice> model_;  // which stays where it is
  mutable cuda::LaneTotalsOnDevice totals_;
  cuda::DeviceShape device_;
  cuda::Array<cuda::PairKey> keys_;
  mutable std::unique_ptr<cuda::LaneRecording> recorded_;
  std::uint64_t sweeps_ = 0;
  bool counting_ = false;
  bool averaging_ = false;

 private:
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();  // of the totals
};

class CudaLaneTile : public CudaLaneStates {
 public:
  using Totals = LaneTotals;

  /// Where levels are while chains move: in the memory of multiprocessors, for many sweeps at a time, or in that of the
  /// device, so that the variables of a colour may be anywhere. What is faster is chosen by default.
  enum class Placement { automatic, resident, spread };

  /// The chains first_chain + group.first and so on; numbers are those of the run. Throws an InputError where the GPU
  /// has too little memory.
  CudaLaneTile(const std::shared_ptr<const CudaLaneModel>& model, ChainGroup group, std::uint64_t seed,
               std::uint64_t first_chain, Placement placement = Placement::automatic)
      : CudaLaneStates(*model, lanes_of(group, first_chain).lanes / 2),
        group_(group),
        lanes_(lanes_of(group, first_chain)),
        levels_(model_->positions(), model_->variables(), lanes_),
        placement_(placement) {
    set_keys(seed, lanes_.lanes / 2, [&](std::size_t pair) { return (first_chain + group.first) / 2 + pair; });
  }

  [[nodiscard]] ChainGroup group() const { return group_; }

  /// Counts levels while `reset_counts` was called, and averages conditionals while `reset_sums` was. Returns when the
  /// sweeps are made.
  void sweep(std::uint64_t sweeps) {
    start_sweeps(sweeps, {});
    cuda::check(cudaDeviceSynchronize(), "sweeps were made");
  }

  // One chain of the run; other threads may set and get other chains at the same time, while none sweeps.
  void set_levels(std::size_t chain, std::span<const Value> levels) { levels_.set(chain - group_.first, levels); }
  void get_levels(std::size_t chain, std::span<Value> levels) const {
    const std::span<const Value> own = levels_.get(chain - group_.first);
    std::copy(own.begin(), own.end(), levels.begin());
  }
  void set_totals(std::size_t chain, const LaneTotals& totals) { set_totals_of(lane(chain), totals); }
  [[nodiscard]] LaneTotals get_totals(std::size_t chain) const { return totals_of(lane(chain), kept()); }
  void get_counts(std::size_t chain, std::span<std::uint64_t> counts) const {
    if (!counting_) return std::fill(counts.begin(), counts.end(), std::uint64_t{0});
    const LaneTotals own = totals_of(lane(chain), {true, false});
    std::copy(own.counts.begin(), own.counts.end(), counts.begin());
  }
  void get_sums(std::size_t chain, std::span<double> sums) const {
    const LaneTotals own = totals_of(lane(chain), {false, true});
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] = own.sums[k] + static_cast<double>(own.recent[k]);
  }

  // All chains of the group, in one go.
  /// Good until the next ones are asked for.
  [[nodiscard]] CudaLaneSums sums() const {
    levels_.to_device();
    return recording().sums_of(levels_.bytes());
  }
  /// The same `draws` times, each after so many sweeps.
  void sweep_and_sum(std::uint64_t sweeps, std::size_t draws, const UseLaneSums& use) {
    cuda::LaneRecording& to = recording();
    const auto start = [&](std::size_t batch, std::size_t size) {
      if (to.draws() == 1) {  // states are summed where they are: a copy would take as much memory again
        start_sweeps(sweeps, {});
        to.start(levels_.bytes(), 1, batch);
        return;
      }
      levels_.to_device();
      copy_rest(size);
      start_sweeps(sweeps * size, {.states = reinterpret_cast<std::uint16_t*>(to.states()),
                                   .words = to.bytes() / sizeof(std::uint16_t),
                                   .every = sweeps,
                                   .made = 0});
      to.start(to.states(), size, batch);
    };
    to.run(draws, start, use);
  }
  /// Chain after chain.
  void get_all_levels(std::span<Value> levels) const { levels_.get_all(levels); }

 private:
  /// Lanes: chains of the run by their numbers, from an even one on, as two share random words.
  static cuda::LaneBatch lanes_of(ChainGroup group, std::uint64_t first_chain) {
    const auto first = static_cast<std::uint32_t>((first_chain + group.first) % 2);
    const auto count = static_cast<std::uint32_t>(group.count);
    return {first, count, (first + count + 1) / 2 * 2};
  }
  [[nodiscard]] std::size_t lane(std::size_t chain) const { return lanes_.first + chain - group_.first; }

  [[nodiscard]] cuda::LanePlan plan(const cuda::LaneTileView& view) const {
    const cuda::LaneShape shape = shape_of(view);
    if (placement_ == Placement::spread) return cuda::plan_spread(shape);
    if (placement_ == Placement::automatic) return cuda::plan_lanes(shape, device_);
    for (const unsigned pairs : {32U, 16U, 8U, 4U, 2U}) {
      const cuda::LanePlan plan = cuda::plan_resident(shape, device_, pairs, false);
      if (plan.resident) return plan;
    }
    throw InputError("the GPU has too little memory on its multiprocessors for two chains of this model");
  }

  /// Without waiting for them; what is recorded goes to where `record` says.
  void start_sweeps(std::uint64_t sweeps, const cuda::LaneRecord& record) {
    levels_.to_device();
    levels_.changed();
    cuda::LaneTileView view = view_of(levels_, lanes_);
    view.counts = counting_ ? totals_.counts() : nullptr;
    view.record = record;
    const cuda::LanePlan plan_now = plan(view);
    // A launch takes some milliseconds: long beside its start, short enough not to be noticed.
    constexpr double kLaunch = 5000.0;  // microseconds
    const auto together = static_cast<std::uint64_t>(std::clamp(kLaunch / plan_now.microseconds, 1.0, 65536.0));
    while (sweeps > 0) {
      std::uint64_t some = std::min(sweeps, together);
      if (counting_ || averaging_) some = std::min(some, most_recent() - sweeps_ % most_recent());
      launch_sweeps<false>(view, plan_now, static_cast<std::uint32_t>(some));
      cuda::check_launch("sweeps were started");
      view.record.made += some;
      sweeps -= some;
      note_sweeps(some);
    }
  }

  cuda::LaneRecording& recording() const {
    if (!recorded_) recorded_ = std::make_unique<cuda::LaneRecording>(*model_, lanes_);
    return *recorded_;
  }
  /// Has states of a batch begin with the positions that sweeps do not look at.
  void copy_rest(std::size_t draws) {
    const std::size_t done = std::size_t{model_->used_positions()} * lanes_.lanes, all = recording().bytes();
    for (std::size_t draw = 0; draw < draws && done < all; ++draw) {
      cuda::check(cudaMemcpyAsync(recording().states() + draw * all + done, levels_.bytes() + done, all - done,
                                  cudaMemcpyDeviceToDevice, nullptr),
                  "states were recorded");
    }
  }

  ChainGroup group_{};
  cuda::LaneBatch lanes_;
  cuda::LevelsOnDevice levels_;
  Placement placement_;
};

}  // namespace poise
