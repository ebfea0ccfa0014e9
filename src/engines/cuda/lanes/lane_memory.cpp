/// Copies of models, levels and totals to and from the device.
#include "engines/cuda/lanes/lane_memory.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace poise::cuda {

namespace {

/// Bytes that are copied to the host at a time.
constexpr std::size_t kBatchBytes = std::size_t{64} << 20;

/// Appends an array where a copy of it may begin on any device.
template <class T>
std::size_t append(std::vector<unsigned char>& bytes, const std::vector<T>& values) {
  const std::size_t at = (bytes.size() + 15) / 16 * 16;
  bytes.resize(at + values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data() + at, values.data(), values.size() * sizeof(T));
  return at;
}

}  // namespace

ModelOnDevice::ModelOnDevice(const CudaLaneModel& from)
    : host_(from.model),
      image_(*from.model),
      log_sums_(from.log_sums),
      unit_(from.exact.unit),
      values_(from.exact.values),
      factors_(from.exact.factors),
      sites_(from.exact.sites),
      first_link_(from.exact.first_link),
      links_(from.exact.links),
      lowest_(from.exact.lowest),
      colours_(image_.colours),
      positions_(from.model->positions()),
      reference_(from.reference) {
  std::vector<unsigned char> bytes;
  append(bytes, image_.variables);
  pairs_at_ = append(bytes, image_.pairs);
  terms_at_ = append(bytes, image_.terms);
  others_at_ = append(bytes, image_.others);
  tables_at_ = append(bytes, image_.tables);
  zeros_at_ = append(bytes, image_.zeros);
  zero_tables_at_ = append(bytes, image_.zero_tables);
  bytes.resize((bytes.size() + 15) / 16 * 16);
  bytes_ = Array<unsigned char>(bytes);
  used_positions_ = image_.colours.back();
  for (const ImagePair& pair : image_.pairs) used_positions_ = std::max(used_positions_, pair.position + 1);
  for (const ImageOthers& others : image_.others) {
    for (const std::uint32_t position : others.position) used_positions_ = std::max(used_positions_, position + 1);
  }
  for (const ExactSite& site : from.exact.sites) used_positions_ = std::max(used_positions_, site.position + 1);
  for (const ImageVariable& variable : image_.variables) most_levels_ = std::max(most_levels_, variable.levels);
}

PackedImage ModelOnDevice::packed() const {
  return {bytes_.data(), bytes_.size(), pairs_at_, terms_at_,      others_at_,
          tables_at_,    has_zeros(),   zeros_at_, zero_tables_at_};
}

LaneTileView ModelOnDevice::view() const {
  // As on the CPU.
  constexpr std::uint64_t kWordsOfUpdate = 2;
  LaneTileView view{};
  view.image = packed();
  view.exact = exact();
  view.colours = colours_.data();
  view.num_colours = static_cast<std::uint32_t>(image_.colours.size() - 1);
  view.positions = used_positions_;
  view.entries = host_->num_entries();
  view.words = host_->num_variables() * kWordsOfUpdate;
  view.two_levels = most_levels_ <= 2;
  return view;
}

ExactView ModelOnDevice::exact() const {
  return {values_.data(), factors_.data(), sites_.data(), first_link_.data(), links_.data(), unit_, lowest_.data()};
}

void LaneTotalsOnDevice::reset_counts() {
  if (recent_counts_.empty()) recent_counts_ = Array<std::uint16_t>(std::size_t{entries_} * pairs_);
  recent_counts_.clear();
  spilled_ = {};
  earlier_.clear();
  recent_sweeps_ = spilled_sweeps_ = 0;
  counted_ = {};
}

void LaneTotalsOnDevice::reset_sums() {
  if (recent_sums_.empty()) {
    recent_sums_ = Array<float>(size());
    earlier_sums_ = Array<double>(size());
  }
  recent_sums_.clear();
  earlier_sums_.clear();
  summed_ = {};
  summed_recently_ = {};
}

void LaneTotalsOnDevice::changed(std::uint64_t sweeps) {
  recent_sweeps_ += sweeps;
  counted_ = {};
  summed_ = {};
  summed_recently_ = {};
}

void LaneTotalsOnDevice::spill() {
  if (!recent_counts_.empty() && recent_sweeps_ > 0) {
    if (spilled_.empty()) {
      spilled_ = Array<std::uint32_t>(size());
      spilled_.clear();
    }
    if (spilled_sweeps_ + recent_sweeps_ > std::numeric_limits<std::uint32_t>::max()) set_aside();
    launch_spill_counts(recent_counts_.data(), spilled_.data(), recent_counts_.size());
    spilled_sweeps_ += recent_sweeps_;
  }
  if (!recent_sums_.empty()) launch_spill_sums(recent_sums_.data(), earlier_sums_.data(), recent_sums_.size());
  check_launch("counts were added up");
  recent_sweeps_ = 0;
}

void LaneTotalsOnDevice::set_aside() {
  earlier_.resize(size(), 0);
  if (spilled_.empty()) return;
  std::vector<std::uint32_t> now(spilled_.size());
  spilled_.download(now);
  for (std::size_t k = 0; k < now.size(); ++k) earlier_[k] += now[k];
  spilled_.clear();
  spilled_sweeps_ = 0;
}

LaneBatch LaneTotalsOnDevice::batch_of(std::uint32_t lane) const {
  const std::size_t most = kBatchBytes / (std::max<std::size_t>(1, entries_) * sizeof(std::uint64_t));
  const auto together = static_cast<std::uint32_t>(std::clamp<std::size_t>(most, 1, 4096));
  const std::uint32_t first = lane / together * together;
  return {first, std::min(together, lanes() - first), lanes()};
}

std::vector<std::uint64_t> LaneTotalsOnDevice::counts_of(std::uint32_t lane) {
  if (!counted_.has(lane)) {
    const LaneBatch batch = batch_of(lane);
    const Array<std::uint64_t> out(std::size_t{batch.count} * entries_);
    launch_gather_counts(reinterpret_cast<const std::uint8_t*>(recent_counts_.data()), spilled_.data(), entries_, batch,
                         out.data());
    check_launch("counts were gathered");
    counted_ = {batch.first, batch.first + batch.count, std::vector<std::uint64_t>(out.size())};
    out.download(counted_.numbers);
  }
  const auto begin =
      counted_.numbers.begin() + static_cast<std::ptrdiff_t>(std::size_t{lane - counted_.first} * entries_);
  std::vector<std::uint64_t> counts(begin, begin + entries_);
  if (earlier_.empty()) return counts;
  for (std::size_t e = 0; e < entries_; ++e) counts[e] += earlier_[e * lanes() + lane];
  return counts;
}

LaneTotalsOnDevice::Sums LaneTotalsOnDevice::sums_of(std::uint32_t lane) {
  if (!summed_.has(lane)) {
    const LaneBatch batch = batch_of(lane);
    const Array<double> earlier(std::size_t{batch.count} * entries_);
    const Array<float> recent(earlier.size());
    launch_gather_sums({earlier_sums_.data(), recent_sums_.data()}, entries_, batch, {earlier.data(), recent.data()});
    check_launch("sums were gathered");
    summed_ = {batch.first, batch.first + batch.count, std::vector<double>(earlier.size())};
    summed_recently_ = {batch.first, batch.first + batch.count, std::vector<float>(recent.size())};
    earlier.download(summed_.numbers);
    recent.download(summed_recently_.numbers);
  }
  const auto at = static_cast<std::ptrdiff_t>(std::size_t{lane - summed_.first} * entries_);
  const auto earlier = summed_.numbers.begin() + at;
  const auto recent = summed_recently_.numbers.begin() + at;
  return {{earlier, earlier + entries_}, {recent, recent + entries_}};
}

void LaneTotalsOnDevice::set_counts(std::uint32_t lane, std::span<const std::uint64_t> counts) {
  // All that was counted so far goes to the host, where a lane can be changed by itself.
  if (recent_sweeps_ > 0) spill();
  if (earlier_.empty() || spilled_sweeps_ > 0) set_aside();
  for (std::size_t e = 0; e < entries_; ++e) earlier_[e * lanes() + lane] = counts[e];
  counted_ = {};
}

void LaneTotalsOnDevice::set_sums(std::uint32_t lane, const Sums& sums) {
  const Array<double> earlier(sums.earlier);
  const Array<float> recent(sums.recent);
  launch_scatter_sums({earlier.data(), recent.data()}, entries_, {lane, 1, lanes()},
                      {earlier_sums_.data(), recent_sums_.data()});
  check_launch("sums were set");
  check(cudaDeviceSynchronize(), "sums were set");
  summed_ = {};
  summed_recently_ = {};
}

LevelsOnDevice::LevelsOnDevice(const std::uint32_t* positions, std::uint32_t rows, LaneBatch chains)
    : positions_(positions), rows_(rows), chains_(chains), levels_(std::size_t{rows} * chains.lanes) {
  levels_.clear();
}

void LevelsOnDevice::copy_out(std::span<Value> levels) const {
  const std::size_t at_a_time = std::clamp<std::size_t>(kBatchBytes / std::max<std::size_t>(1, rows_), 1, 65536);
  const Array<std::uint8_t> out(std::min<std::size_t>(at_a_time, chains_.count) * rows_);
  for (std::size_t done = 0; done < chains_.count; done += at_a_time) {
    const std::size_t some = std::min(at_a_time, chains_.count - done);
    const LaneBatch batch{static_cast<std::uint32_t>(chains_.first + done), static_cast<std::uint32_t>(some),
                          chains_.lanes};
    launch_gather_levels(levels_.data(), positions_, rows_, batch, out.data());
    check_launch("levels were gathered");
    out.download(levels.subspan(done * rows_, some * rows_));
  }
}

void LevelsOnDevice::to_host() const {
  if (host_is_current_) return;
  const std::lock_guard lock(mutex_);
  if (host_is_current_) return;
  host_.resize(std::size_t{chains_.count} * rows_);
  copy_out(host_);
  host_is_current_ = true;
}

void LevelsOnDevice::to_device() const {
  if (!host_is_newer_) return;
  const std::size_t at_a_time = std::clamp<std::size_t>(kBatchBytes / std::max<std::size_t>(1, rows_), 1, 65536);
  Array<std::uint8_t> in(std::min<std::size_t>(at_a_time, chains_.count) * rows_);
  for (std::size_t done = 0; done < chains_.count; done += at_a_time) {
    const std::size_t some = std::min(at_a_time, chains_.count - done);
    in.upload(std::span<const std::uint8_t>(host_).subspan(done * rows_, some * rows_));
    const LaneBatch batch{static_cast<std::uint32_t>(chains_.first + done), static_cast<std::uint32_t>(some),
                          chains_.lanes};
    launch_scatter_levels(in.data(), positions_, rows_, batch, levels_.data());
    check_launch("levels were set");
    check(cudaDeviceSynchronize(), "levels were set");
  }
  host_is_newer_ = false;
}

std::span<const Value> LevelsOnDevice::get(std::size_t number) const {
  to_host();
  return {host_.data() + number * rows_, rows_};
}

void LevelsOnDevice::set(std::size_t number, std::span<const Value> levels) {
  to_host();
  host_is_newer_ = true;
  std::copy(levels.begin(), levels.end(), host_.begin() + static_cast<std::ptrdiff_t>(number * rows_));
}

void LevelsOnDevice::get_all(std::span<Value> levels) const {
  if (host_is_current_) {
    std::copy(host_.begin(), host_.end(), levels.begin());
    return;
  }
  copy_out(levels);
}

LaneTotals LaneTotalsOnDevice::get(std::uint32_t lane, Kept kept, const ModelOnDevice& model) {
  LaneTotals totals;
  if (kept.counts) {
    const std::vector<std::uint64_t> counts = counts_of(lane);
    totals.counts.resize(entries_);
    model.for_each_entry([&](std::size_t outside, std::size_t inside) { totals.counts[outside] = counts[inside]; });
  }
  if (!kept.sums) return totals;
  const Sums sums = sums_of(lane);
  totals.sums.resize(entries_);
  totals.recent.resize(entries_);
  model.for_each_entry([&](std::size_t outside, std::size_t inside) {
    totals.sums[outside] = sums.earlier[inside];
    totals.recent[outside] = sums.recent[inside];
  });
  return totals;
}

void LaneTotalsOnDevice::set(std::uint32_t lane, Kept kept, const ModelOnDevice& model, const LaneTotals& totals) {
  if (kept.counts) {
    std::vector<std::uint64_t> counts(entries_);
    model.for_each_entry([&](std::size_t outside, std::size_t inside) { counts[inside] = totals.counts[outside]; });
    set_counts(lane, counts);
  }
  if (!kept.sums) return;
  Sums sums{std::vector<double>(entries_), std::vector<float>(entries_)};
  model.for_each_entry([&](std::size_t outside, std::size_t inside) {
    sums.earlier[inside] = totals.sums[outside];
    sums.recent[inside] = totals.recent[outside];
  });
  set_sums(lane, sums);
}

// Batches of draws: how large they are, and how their sums come to the host.

namespace {

/// Draws up to which a batch is worth while.
constexpr std::size_t kMostDraws = 64;
constexpr std::size_t kStateBytes = std::size_t{64} << 20;
/// Bytes that are fetched together: the caches of the host have room for them.
constexpr std::size_t kFoundBytes = std::size_t{4} << 20;

}  // namespace

LaneRecording::LaneRecording(const ModelOnDevice& model, std::uint32_t rows, LaneBatch lanes)
    : model_(model),
      rows_(rows),
      lanes_(lanes),
      draws_(std::clamp<std::size_t>(
          std::min(kStateBytes / std::max<std::size_t>(1, bytes()), kFoundBytes / DrawSums::size(lanes.lanes)), 1,
          kMostDraws)) {
  make_room(1);
}

void LaneRecording::make_room(std::size_t draws) {
  found_ = Array<unsigned char>(kSlots * draws * DrawSums::size(lanes_.lanes));
  host_ = pinned<unsigned char>(found_.size());
}

void LaneRecording::run(std::size_t draws, const std::function<void(std::size_t batch, std::size_t size)>& start,
                        const std::function<void(std::size_t draw, const CudaLaneSums& sums)>& use) {
  if (!batches_) {
    make_room(draws_);
    batches_ = std::make_unique<DrawBatches>(kSlots);
  }
  batches_->run(draws, draws_,
                {.start = start,
                 .wait = [&](std::size_t batch) { wait(batch); },
                 .use = [&](std::size_t batch, std::size_t draw) { use(batch * draws_ + draw, sums(batch, draw)); }});
}

std::uint8_t* LaneRecording::states() {
  if (states_.empty()) states_ = Array<std::uint8_t>(draws_ * bytes());
  return states_.data();
}

void LaneRecording::start(const std::uint8_t* states, std::size_t draws, std::size_t batch) {
  const std::size_t slot = batch % kSlots * (found_.size() / kSlots);
  const SumsOfDraws view{.exact = model_.exact(),
                         .factors = model_.factors(),
                         .states = states,
                         .bytes = bytes(),
                         .draws = static_cast<std::uint32_t>(draws),
                         .lanes = lanes_.lanes,
                         .positions = rows_,
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

CudaLaneSums LaneRecording::sums(std::size_t batch, std::size_t draw) const {
  const DrawSums all{host_.get() + batch % kSlots * (found_.size() / kSlots), lanes_.lanes};
  return {{all.units(draw) + lanes_.first, lanes_.count},
          {all.different(draw) + lanes_.first, lanes_.count},
          {all.at_level(draw) + lanes_.first, lanes_.count}};
}

}  // namespace poise::cuda
