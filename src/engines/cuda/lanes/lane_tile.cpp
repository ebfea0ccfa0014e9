/// A tile of chains across lanes, on the device.
#include "engines/cuda/lanes/lane_tile.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "engines/common/keyed_words.hpp"
#include "engines/cuda/common/call.hpp"
#include "engines/cuda/lanes/lane_memory.hpp"

namespace poise {

namespace {

static_assert(cuda::kWordStep64 == kWordStep && cuda::kMostLevels == LaneModel::kMostLevels);

/// Lanes: chains of the run by their numbers, from an even one on, as two share random words.
cuda::LaneBatch lanes_of(ChainGroup group, std::uint64_t first_chain) {
  const auto first = static_cast<std::uint32_t>((first_chain + group.first) % 2);
  const auto count = static_cast<std::uint32_t>(group.count);
  return {first, count, (first + count + 1) / 2 * 2};
}

}  // namespace

class CudaLaneTile::OnDevice {
 public:
  OnDevice(const CudaLaneModel& from, cuda::LaneBatch the_lanes, Placement the_placement)
      : model(from),
        rows(from.model->num_variables()),
        lanes(the_lanes),
        levels(model.positions(), rows, the_lanes),
        totals(from.model->num_entries(), the_lanes.lanes / 2),
        placement(the_placement),
        device(cuda::this_device()) {}

  void set_keys(std::uint64_t seed, std::uint64_t first_pair) {
    std::vector<cuda::PairKey> all(lanes.lanes / 2);
    for (std::size_t p = 0; p < all.size(); ++p) {
      const WordKey key = word_key(seed, Stream::lanes, first_pair + p);
      all[p] = {key.first, key.second};
    }
    keys = cuda::Array<cuda::PairKey>(all);
  }

  [[nodiscard]] cuda::LaneTileView view(bool counting, bool averaging) const {
    cuda::LaneTileView view = model.view();
    view.levels = levels.words();
    view.counts = counting ? totals.counts() : nullptr;
    view.sums = averaging ? totals.sums() : nullptr;
    view.keys = keys.data();
    view.pairs = lanes.lanes / 2;
    view.first_lane = lanes.first;
    view.end_lane = lanes.first + lanes.count;
    return view;
  }

  [[nodiscard]] cuda::LanePlan plan(const cuda::LaneTileView& view) const {
    const cuda::LaneShape shape{.pairs = view.pairs,
                                .rows = view.positions + (view.counts != nullptr ? view.entries : 0U),
                                .image_bytes = model.image_bytes(),
                                .colours = model.image().colours};
    if (placement == Placement::spread) return cuda::plan_spread(shape);
    if (placement == Placement::automatic) return cuda::plan_lanes(shape, device);
    for (const unsigned pairs : {32U, 16U, 8U, 4U, 2U}) {
      const cuda::LanePlan plan = cuda::plan_resident(shape, device, pairs, false);
      if (plan.resident) return plan;
    }
    throw InputError("the GPU has too little memory on its multiprocessors for two chains of this model");
  }

  /// As many sweeps as were made: all in one launch, or colour by colour. States that are recorded from shared memory
  /// lack the positions that no sweep looks at.
  void sweep(const cuda::LaneTileView& view, cuda::LanePlan plan, std::uint64_t first, std::uint32_t count) {
    if (plan.resident && cuda::launch_resident(view, plan, first, count)) return;
    if (plan.resident) plan = cuda::plan_spread({.pairs = view.pairs, .colours = model.image().colours});
    const std::vector<std::uint32_t>& colours = model.image().colours;
    for (std::uint32_t k = 0; k < count; ++k) {
      for (std::size_t c = 0; c + 1 < colours.size(); ++c) {
        cuda::launch_colour(view, plan, first + k, colours[c], colours[c + 1]);
      }
      if (!view.record.is_due(k)) continue;
      const std::size_t bytes = view.record.words * sizeof(std::uint16_t);
      cuda::check(cudaMemcpyAsync(view.record.slot(k), levels.words(), bytes, cudaMemcpyDeviceToDevice, nullptr),
                  "states were recorded");
    }
  }

  cuda::LaneRecording& recording() {
    if (!recorded) recorded = std::make_unique<cuda::LaneRecording>(model, rows, lanes);
    return *recorded;
  }

  /// Has states of a batch begin with the positions that sweeps do not look at.
  void copy_rest(std::size_t draws) {
    const std::size_t done = std::size_t{model.used_positions()} * lanes.lanes, all = recording().bytes();
    for (std::size_t draw = 0; draw < draws && done < all; ++draw) {
      cuda::check(cudaMemcpyAsync(recording().states() + draw * all + done, levels.bytes() + done, all - done,
                                  cudaMemcpyDeviceToDevice, nullptr),
                  "states were recorded");
    }
  }

  cuda::ModelOnDevice model;
  std::uint32_t rows;
  cuda::LaneBatch lanes;
  cuda::LevelsOnDevice levels;
  cuda::LaneTotalsOnDevice totals;
  cuda::Array<cuda::PairKey> keys;
  Placement placement;
  cuda::DeviceShape device;
  std::mutex mutex;  // of the totals
  std::unique_ptr<cuda::LaneRecording> recorded;
};

CudaLaneTile::CudaLaneTile(std::shared_ptr<const CudaLaneModel> model, ChainGroup group, std::uint64_t seed,
                           std::uint64_t first_chain, Placement placement)
    : model_(std::move(model)), group_(group), first_chain_(first_chain) {
  device_ = std::make_unique<OnDevice>(*model_, lanes_of(group, first_chain), placement);
  device_->set_keys(seed, (first_chain + group.first) / 2);
}

CudaLaneTile::~CudaLaneTile() = default;
CudaLaneTile::CudaLaneTile(CudaLaneTile&&) noexcept = default;
CudaLaneTile& CudaLaneTile::operator=(CudaLaneTile&&) noexcept = default;

std::uint32_t CudaLaneTile::lane(std::size_t chain) const {
  return device_->lanes.first + static_cast<std::uint32_t>(chain - group_.first);
}

void CudaLaneTile::set_progress(const TileProgress& progress) {
  sweeps_ = progress.sweeps;
  if (progress.counts != 0) reset_counts();
  if (progress.averages != 0) reset_sums();
}

void CudaLaneTile::sweep(std::uint64_t sweeps) {
  start_sweeps(sweeps, {});
  cuda::check(cudaDeviceSynchronize(), "sweeps were made");
}

void CudaLaneTile::start_sweeps(std::uint64_t sweeps, const cuda::LaneRecord& record) {
  OnDevice& device = *device_;
  device.levels.to_device();
  device.levels.changed();
  cuda::LaneTileView view = device.view(counting_, averaging_);
  view.record = record;
  const cuda::LanePlan plan = device.plan(view);
  // A launch takes some milliseconds: long beside its start, short enough that nobody waits for it.
  constexpr double kLaunch = 5000.0;  // microseconds
  const auto together = static_cast<std::uint64_t>(std::clamp(kLaunch / plan.microseconds, 1.0, 65536.0));
  // Up to where the CPU adds recent counts and sums to the others, so that both round alike.
  const std::uint64_t recent = averaging_ ? LaneModel::kMostSummed : LaneModel::kMostCounted;
  while (sweeps > 0) {
    std::uint64_t some = std::min(sweeps, together);
    if (counting_ || averaging_) some = std::min(some, recent - sweeps_ % recent);
    device.sweep(view, plan, sweeps_, static_cast<std::uint32_t>(some));
    cuda::check_launch("sweeps were started");
    view.record.made += some;
    sweeps_ += some;
    sweeps -= some;
    if (!counting_ && !averaging_) continue;
    device.totals.changed(some);
    if (sweeps_ % recent == 0) device.totals.spill();
  }
}

void CudaLaneTile::reset_counts() {
  device_->totals.reset_counts();
  counting_ = true;
}

void CudaLaneTile::reset_sums() {
  device_->totals.reset_sums();
  averaging_ = true;
}

void CudaLaneTile::set_levels(std::size_t chain, std::span<const Value> levels) {
  device_->levels.set(chain - group_.first, levels);
}

void CudaLaneTile::get_levels(std::size_t chain, std::span<Value> levels) const {
  const std::span<const Value> own = device_->levels.get(chain - group_.first);
  std::copy(own.begin(), own.end(), levels.begin());
}

void CudaLaneTile::set_totals(std::size_t chain, const LaneTotals& totals) {
  const std::lock_guard lock(device_->mutex);
  device_->totals.set(lane(chain), {counting_, averaging_}, device_->model, totals);
}

LaneTotals CudaLaneTile::get_totals(std::size_t chain) const {
  const std::lock_guard lock(device_->mutex);
  return device_->totals.get(lane(chain), {counting_, averaging_}, device_->model);
}

void CudaLaneTile::get_counts(std::size_t chain, std::span<std::uint64_t> counts) const {
  if (!counting_) return std::fill(counts.begin(), counts.end(), std::uint64_t{0});
  const std::lock_guard lock(device_->mutex);
  const std::vector<std::uint64_t> own = device_->totals.counts_of(lane(chain));
  device_->model.for_each_entry([&](std::size_t outside, std::size_t inside) { counts[outside] = own[inside]; });
}

void CudaLaneTile::get_sums(std::size_t chain, std::span<double> sums) const {
  const std::lock_guard lock(device_->mutex);
  const cuda::LaneTotalsOnDevice::Sums own = device_->totals.sums_of(lane(chain));
  device_->model.for_each_entry([&](std::size_t outside, std::size_t inside) {
    sums[outside] = own.earlier[inside] + static_cast<double>(own.recent[inside]);
  });
}

CudaLaneSums CudaLaneTile::sums() const {
  device_->levels.to_device();
  cuda::LaneRecording& recording = device_->recording();
  recording.start(device_->levels.bytes(), 1, 0);
  recording.wait(0);
  return recording.sums(0, 0);
}

void CudaLaneTile::sweep_and_sum(std::uint64_t sweeps, std::size_t draws,
                                 const std::function<void(std::size_t draw, const CudaLaneSums& sums)>& use) {
  OnDevice& device = *device_;
  cuda::LaneRecording& recording = device.recording();
  const std::size_t together = recording.draws();
  const auto start = [&](std::size_t batch, std::size_t size) {
    if (together == 1) {  // states are summed where they are: a copy would take as much memory again
      start_sweeps(sweeps, {});
      recording.start(device.levels.bytes(), 1, batch);
      return;
    }
    device.levels.to_device();
    device.copy_rest(size);
    start_sweeps(sweeps * size, {.states = reinterpret_cast<std::uint16_t*>(recording.states()),
                                 .words = recording.bytes() / sizeof(std::uint16_t),
                                 .every = sweeps,
                                 .made = 0});
    recording.start(recording.states(), size, batch);
  };
  recording.run(draws, start, use);
}

void CudaLaneTile::get_all_levels(std::span<Value> levels) const { device_->levels.get_all(levels); }

}  // namespace poise
