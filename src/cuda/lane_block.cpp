/// A block of chains across lanes, on the device.
#include <poise/cuda/lane_block.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

#include <poise/lanes/keyed_words.hpp>
#include "lane_memory.hpp"

namespace poise {

namespace {

static_assert(cuda::kWordStep64 == kWordStep && cuda::kMostLevels == LaneModel::kMostLevels);

/// Random words that an update may need, as on the CPU.
constexpr std::uint64_t kWordsPerUpdate64 = 2;

/// Lanes: chains of the run by their numbers, from an even one on, as two share random words.
cuda::LaneBatch lanes_of(ChainGroup group, std::uint64_t first_chain) {
  const auto first = static_cast<std::uint32_t>((first_chain + group.first) % 2);
  const auto count = static_cast<std::uint32_t>(group.count);
  return {first, count, (first + count + 1) / 2 * 2};
}

}  // namespace

class CudaLaneBlock::OnDevice {
 public:
  OnDevice(const CudaLaneModel& from, cuda::LaneBatch the_lanes, Placement the_placement)
      : model(from),
        lanes(the_lanes),
        levels(model.positions(), from.model->num_variables(), the_lanes),
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

  [[nodiscard]] cuda::LaneBlockView view(const CudaLaneModel& from, bool counting, bool averaging) const {
    return {.image = model.packed(),
            .exact = model.exact(),
            .colours = model.colours(),
            .num_colours = static_cast<std::uint32_t>(model.image().colours.size() - 1),
            .levels = levels.words(),
            .counts = counting ? totals.counts() : nullptr,
            .sums = averaging ? totals.sums() : nullptr,
            .keys = keys.data(),
            .pairs = lanes.lanes / 2,
            .first_lane = lanes.first,
            .end_lane = lanes.first + lanes.count,
            .positions = model.used_positions(),
            .entries = from.model->num_entries(),
            .words = from.model->num_variables() * kWordsPerUpdate64,
            .two_levels = model.most_levels() <= 2};
  }

  [[nodiscard]] cuda::LanePlan plan(const cuda::LaneBlockView& view) const {
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

  /// As many sweeps as were made: all in one launch, or colour by colour.
  void sweep(const cuda::LaneBlockView& view, cuda::LanePlan plan, std::uint64_t first, std::uint32_t count) {
    if (plan.resident && cuda::launch_resident(view, plan, first, count)) return;
    if (plan.resident) plan = cuda::plan_spread({.pairs = view.pairs, .colours = model.image().colours});
    const std::vector<std::uint32_t>& colours = model.image().colours;
    for (std::uint32_t k = 0; k < count; ++k) {
      for (std::size_t c = 0; c + 1 < colours.size(); ++c) {
        cuda::launch_colour(view, plan, first + k, colours[c], colours[c + 1]);
      }
    }
  }

  [[nodiscard]] cuda::FactorsView factors() const {
    return {model.exact(), model.factors(), levels.bytes(), lanes.lanes};
  }

  /// What was found for each lane, without those that are no chains.
  template <class T>
  [[nodiscard]] std::vector<T> chains_of(const std::vector<T>& all, std::size_t row = 0) const {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * lanes.lanes + lanes.first);
    return {begin, begin + lanes.count};
  }

  /// Numbers that a kernel finds for all lanes, in so many rows. The memory is kept: to ask for it takes longer than to
  /// find them.
  template <class T, class Launch>
  [[nodiscard]] std::vector<T> find(cuda::Array<T>& memory, std::size_t rows, Launch&& launch) const {
    levels.to_device();
    if (memory.empty()) memory = cuda::Array<T>(rows * lanes.lanes);
    launch(memory.data());
    cuda::check_launch("states were summed");
    std::vector<T> found(memory.size());
    memory.download(found);
    return found;
  }

  cuda::ModelOnDevice model;
  cuda::LaneBatch lanes;
  cuda::LevelsOnDevice levels;
  cuda::LaneTotalsOnDevice totals;
  cuda::Array<cuda::PairKey> keys;
  Placement placement;
  cuda::DeviceShape device;
  std::mutex mutex;  // of the totals
  cuda::Array<double> log_sums;
  cuda::Array<std::int64_t> exact_sums;
  cuda::Array<std::uint32_t> tallies;
};

CudaLaneBlock::CudaLaneBlock(std::shared_ptr<const CudaLaneModel> model, ChainGroup group, std::uint64_t seed,
                             std::uint64_t first_chain, Placement placement)
    : model_(std::move(model)), group_(group), first_chain_(first_chain) {
  device_ = std::make_unique<OnDevice>(*model_, lanes_of(group, first_chain), placement);
  device_->set_keys(seed, (first_chain + group.first) / 2);
}

CudaLaneBlock::~CudaLaneBlock() = default;
CudaLaneBlock::CudaLaneBlock(CudaLaneBlock&&) noexcept = default;
CudaLaneBlock& CudaLaneBlock::operator=(CudaLaneBlock&&) noexcept = default;

std::uint32_t CudaLaneBlock::lane(std::size_t chain) const {
  return device_->lanes.first + static_cast<std::uint32_t>(chain - group_.first);
}

void CudaLaneBlock::set_progress(const BlockProgress& progress) {
  sweeps_ = progress.sweeps;
  if (progress.counts != 0) reset_counts();
  if (progress.averages != 0) reset_sums();
}

void CudaLaneBlock::sweep(std::uint64_t sweeps) {
  OnDevice& device = *device_;
  device.levels.to_device();
  device.levels.changed();
  const cuda::LaneBlockView view = device.view(*model_, counting_, averaging_);
  const cuda::LanePlan plan = device.plan(view);
  // A launch takes some milliseconds: long beside its start, short enough that nobody waits for it.
  constexpr double kLaunch = 5000.0;  // microseconds
  const auto together = static_cast<std::uint64_t>(std::clamp(kLaunch / plan.microseconds, 1.0, 65536.0));
  while (sweeps > 0) {
    std::uint64_t some = std::min(sweeps, together);
    // Up to where the CPU adds recent counts and sums to the others, so that both round alike.
    if (counting_ || averaging_) some = std::min(some, kMostRecent - sweeps_ % kMostRecent);
    device.sweep(view, plan, sweeps_, static_cast<std::uint32_t>(some));
    cuda::check_launch("sweeps were started");
    sweeps_ += some;
    sweeps -= some;
    if (!counting_ && !averaging_) continue;
    device.totals.changed(some);
    if (sweeps_ % kMostRecent == 0) device.totals.spill();
  }
  cuda::check(cudaDeviceSynchronize(), "sweeps were made");
}

void CudaLaneBlock::reset_counts() {
  device_->totals.reset_counts();
  counting_ = true;
}

void CudaLaneBlock::reset_sums() {
  device_->totals.reset_sums();
  averaging_ = true;
}

void CudaLaneBlock::set_levels(std::size_t chain, std::span<const Value> levels) {
  device_->levels.set(chain - group_.first, levels);
}

void CudaLaneBlock::get_levels(std::size_t chain, std::span<Value> levels) const {
  const std::span<const Value> own = device_->levels.get(chain - group_.first);
  std::copy(own.begin(), own.end(), levels.begin());
}

/// Calls `use` with the number of each entry in the order of variables, and in that of updates.
template <class Use>
void CudaLaneBlock::for_each_entry(Use&& use) const {
  for (const ImageVariable& variable : device_->model.image().variables) {
    const Index first = model_->model->entries()[variable.variable];
    for (Index level = 1; level < variable.levels; ++level) use(first + level - 1, variable.entry + level - 1);
  }
}

void CudaLaneBlock::set_totals(std::size_t chain, const LaneTotals& totals) {
  const std::lock_guard lock(device_->mutex);
  const std::size_t entries = model_->model->num_entries();
  if (counting_) {
    std::vector<std::uint64_t> counts(entries);
    for_each_entry([&](std::size_t outside, std::size_t inside) { counts[inside] = totals.counts[outside]; });
    device_->totals.set_counts(lane(chain), counts);
  }
  if (averaging_) {
    cuda::LaneTotalsOnDevice::Sums sums{std::vector<double>(entries), std::vector<float>(entries)};
    for_each_entry([&](std::size_t outside, std::size_t inside) {
      sums.earlier[inside] = totals.sums[outside];
      sums.recent[inside] = totals.recent[outside];
    });
    device_->totals.set_sums(lane(chain), sums);
  }
}

LaneTotals CudaLaneBlock::get_totals(std::size_t chain) const {
  LaneTotals totals;
  totals.counts.resize(counting_ ? model_->model->num_entries() : 0);
  if (counting_) get_counts(chain, totals.counts);
  if (!averaging_) return totals;
  totals.sums.resize(model_->model->num_entries());
  totals.recent.resize(totals.sums.size());
  const std::lock_guard lock(device_->mutex);
  const cuda::LaneTotalsOnDevice::Sums sums = device_->totals.sums_of(lane(chain));
  for_each_entry([&](std::size_t outside, std::size_t inside) {
    totals.sums[outside] = sums.earlier[inside];
    totals.recent[outside] = sums.recent[inside];
  });
  return totals;
}

void CudaLaneBlock::get_counts(std::size_t chain, std::span<std::uint64_t> counts) const {
  if (!counting_) return std::fill(counts.begin(), counts.end(), std::uint64_t{0});
  const std::lock_guard lock(device_->mutex);
  const std::vector<std::uint64_t> own = device_->totals.counts_of(lane(chain));
  for_each_entry([&](std::size_t outside, std::size_t inside) { counts[outside] = own[inside]; });
}

void CudaLaneBlock::get_sums(std::size_t chain, std::span<double> sums) const {
  const std::lock_guard lock(device_->mutex);
  const cuda::LaneTotalsOnDevice::Sums own = device_->totals.sums_of(lane(chain));
  for_each_entry([&](std::size_t outside, std::size_t inside) {
    sums[outside] = own.earlier[inside] + static_cast<double>(own.recent[inside]);
  });
}

std::vector<double> CudaLaneBlock::log_sums() const {
  OnDevice& device = *device_;
  return device.chains_of(
      device.find(device.log_sums, 1, [&](double* out) { cuda::launch_log_sums(device.factors(), out); }));
}

std::vector<std::int64_t> CudaLaneBlock::exact_sums() const {
  OnDevice& device = *device_;
  return device.chains_of(
      device.find(device.exact_sums, 1, [&](std::int64_t* out) { cuda::launch_exact_sums(device.factors(), out); }));
}

CudaLaneBlock::Tally CudaLaneBlock::tally() const {
  OnDevice& device = *device_;
  const cuda::TallyView view{device.levels.bytes(), device.lanes.lanes, model_->model->num_variables(),
                             device.model.most_levels(), device.model.reference()};
  const std::vector<std::uint32_t> all =
      device.find(device.tallies, 3, [&](std::uint32_t* out) { cuda::launch_tally(view, out); });
  return {device.chains_of(all, 0), device.chains_of(all, 1), device.chains_of(all, 2)};
}

void CudaLaneBlock::get_all_levels(std::span<Value> levels) const { device_->levels.get_all(levels); }

}  // namespace poise
