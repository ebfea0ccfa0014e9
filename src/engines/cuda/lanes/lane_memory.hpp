/// What chains across lanes have in the memory of the device, and copies of it to and from there: the model, levels,
/// and what is counted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "engines/common/keyed_words.hpp"
#include "engines/cpu/lanes/lane_image.hpp"
#include "engines/cpu/lanes/lane_model.hpp"
#include "engines/cpu/lanes/lane_tile.hpp"
#include "engines/cuda/common/call.hpp"
#include "engines/cuda/lanes/lane_kernels.hpp"

namespace poise {

/// How log p is added up: factor by factor, as networks have it, or in integers, which takes a model without zeros, as
/// Ising models are.
enum class CudaLogSums { in_order, in_integers };

/// What a tile is made from.
struct CudaLaneModel {
  std::shared_ptr<const LaneModel> model;
  ExactTables exact;
  std::vector<Value> reference;  ///< by position
  CudaLogSums log_sums = CudaLogSums::in_order;

  /// By variable.
  void set_reference(std::span<const Value> levels) {
    reference.resize(levels.size());
    for (Index i = 0; i < levels.size(); ++i) reference[model->position(i)] = levels[i];
  }
};

namespace cuda {

static_assert(kWordStep64 == kWordStep && kMostLevels == LaneModel::kMostLevels && kHardZero == LaneModel::kZero);

/// Bytes that are copied to the host at a time.
inline constexpr std::size_t kBatchBytes = std::size_t{64} << 20;

/// A LaneImage and ExactTables on the device.
class ModelOnDevice {
 public:
  explicit ModelOnDevice(const CudaLaneModel& from)
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
    packed_.pairs = append(bytes, image_.pairs);
    packed_.terms = append(bytes, image_.terms);
    packed_.others = append(bytes, image_.others);
    packed_.tables = append(bytes, image_.tables);
    packed_.has_zeros = !image_.zeros.empty();
    packed_.zeros = append(bytes, image_.zeros);
    packed_.zero_tables = append(bytes, image_.zero_tables);
    bytes.resize((bytes.size() + 15) / 16 * 16);
    bytes_ = Array<unsigned char>(bytes);
    packed_.bytes = bytes_.data();
    packed_.size = bytes_.size();
    used_positions_ = image_.colours.back();
    const auto use = [&](std::uint32_t position) { used_positions_ = std::max(used_positions_, position + 1); };
    for (const ImagePair& pair : image_.pairs) use(pair.position);
    for (const ImageOthers& others : image_.others) {
      for (const std::uint32_t position : others.position) use(position);
    }
    for (const ExactSite& site : from.exact.sites) use(site.position);
    for (const ImageVariable& variable : image_.variables) most_levels_ = std::max(most_levels_, variable.levels);
  }

  [[nodiscard]] const LaneImage& image() const { return image_; }
  [[nodiscard]] ExactView exact() const {
    return {values_.data(), factors_.data(), sites_.data(), first_link_.data(), links_.data(), unit_, lowest_.data()};
  }
  [[nodiscard]] std::uint32_t factors() const { return static_cast<std::uint32_t>(factors_.size()); }
  [[nodiscard]] const std::uint32_t* positions() const { return positions_.data(); }
  [[nodiscard]] const std::uint8_t* reference() const { return reference_.data(); }
  /// The end of the positions that updates look at or change.
  [[nodiscard]] std::uint32_t used_positions() const { return used_positions_; }
  [[nodiscard]] std::uint32_t most_levels() const { return most_levels_; }
  [[nodiscard]] CudaLogSums log_sums() const { return log_sums_; }
  [[nodiscard]] std::uint32_t variables() const { return host_->num_variables(); }

  /// Calls `use` with the number of each entry in the order of variables, and in that of updates.
  template <class Use>
  void for_each_entry(Use&& use) const {
    for (const ImageVariable& variable : image_.variables) {
      const Index first = host_->entries()[variable.variable];
      for (Index level = 1; level < variable.levels; ++level) use(first + level - 1, variable.entry + level - 1);
    }
  }
  /// What sweeps read of the model; the rest is still to be filled in.
  [[nodiscard]] LaneTileView view() const {
    // As on the CPU.
    constexpr std::uint64_t kWordsOfUpdate = 2;
    LaneTileView view{};
    view.image = packed_;
    view.exact = exact();
    view.colours = colours_.data();
    view.num_colours = static_cast<std::uint32_t>(image_.colours.size() - 1);
    view.positions = used_positions_;
    view.entries = host_->num_entries();
    view.words = host_->num_variables() * kWordsOfUpdate;
    view.two_levels = most_levels_ <= 2;
    return view;
  }

 private:
  /// Appends an array where a copy of it may begin on any device.
  template <class T>
  static std::size_t append(std::vector<unsigned char>& bytes, const std::vector<T>& values) {
    const std::size_t at = (bytes.size() + 15) / 16 * 16;
    bytes.resize(at + values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(bytes.data() + at, values.data(), values.size() * sizeof(T));
    return at;
  }

  std::shared_ptr<const LaneModel> host_;
  LaneImage image_;
  PackedImage packed_{};
  std::uint32_t used_positions_ = 0;
  std::uint32_t most_levels_ = 1;
  CudaLogSums log_sums_;
  Array<unsigned char> bytes_;
  double unit_;
  Array<std::int64_t> values_;
  Array<ExactFactor> factors_;
  Array<ExactSite> sites_;
  Array<std::uint32_t> first_link_;
  Array<ExactLink> links_;
  Array<std::int64_t> lowest_;
  Array<std::uint32_t> colours_;
  Array<std::uint32_t> positions_;
  Array<std::uint8_t> reference_;
};

/// Counts of levels and sums of conditionals, [entry][lane]: recent ones in bytes and floats.
class LaneTotalsOnDevice {
 public:
  LaneTotalsOnDevice(std::uint32_t entries, std::uint32_t pairs) : entries_(entries), pairs_(pairs) {}

  void reset_counts() {
    if (recent_counts_.empty()) recent_counts_ = Array<std::uint16_t>(std::size_t{entries_} * pairs_);
    recent_counts_.clear();
    spilled_ = {};
    earlier_.clear();
    recent_sweeps_ = spilled_sweeps_ = 0;
    counted_ = {};
  }
  void reset_sums() {
    if (recent_sums_.empty()) {
      recent_sums_ = Array<float>(size());
      earlier_sums_ = Array<double>(size());
    }
    recent_sums_.clear();
    earlier_sums_.clear();
    forget_sums();
  }
  [[nodiscard]] std::uint16_t* counts() const { return recent_counts_.data(); }
  [[nodiscard]] float* sums() const { return recent_sums_.data(); }

  /// Adds recent ones to the earlier ones.
  void spill() {
    if (!recent_counts_.empty() && recent_sweeps_ > 0) {
      if (spilled_.empty()) spilled_ = zeros<std::uint32_t>(size());
      if (spilled_sweeps_ + recent_sweeps_ > std::numeric_limits<std::uint32_t>::max()) set_aside();
      launch_spill_counts(recent_counts_.data(), spilled_.data(), recent_counts_.size());
      spilled_sweeps_ += recent_sweeps_;
    }
    if (!recent_sums_.empty()) launch_spill_sums(recent_sums_.data(), earlier_sums_.data(), recent_sums_.size());
    check_launch("counts were added up");
    recent_sweeps_ = 0;
  }
  /// Says that more was counted: copies on the host are old.
  void changed(std::uint64_t sweeps) {
    recent_sweeps_ += sweeps;
    counted_ = {};
    forget_sums();
  }

  /// Which of them there are, or are asked for.
  struct Kept {
    bool counts;
    bool sums;
  };
  // Totals of one lane, in the order of variables.
  [[nodiscard]] LaneTotals get(std::uint32_t lane, Kept kept, const ModelOnDevice& model) {
    LaneTotals totals;
    if (kept.counts) {
      const std::uint64_t* const counts = counts_of(lane);
      totals.counts.resize(entries_);
      model.for_each_entry([&](std::size_t outside, std::size_t inside) {
        totals.counts[outside] = counts[inside] + (earlier_.empty() ? 0 : earlier_[inside * lanes() + lane]);
      });
    }
    if (!kept.sums) return totals;
    const LaneSums sums = sums_of(lane);
    totals.sums.resize(entries_);
    totals.recent.resize(entries_);
    model.for_each_entry([&](std::size_t outside, std::size_t inside) {
      totals.sums[outside] = sums.earlier[inside];
      totals.recent[outside] = sums.recent[inside];
    });
    return totals;
  }
  void set(std::uint32_t lane, Kept kept, const ModelOnDevice& model, const LaneTotals& totals) {
    if (kept.counts) {
      // All that was counted so far goes to the host, where a lane can be changed by itself.
      if (recent_sweeps_ > 0) spill();
      if (earlier_.empty() || spilled_sweeps_ > 0) set_aside();
      model.for_each_entry(
          [&](std::size_t outside, std::size_t inside) { earlier_[inside * lanes() + lane] = totals.counts[outside]; });
      counted_ = {};
    }
    if (!kept.sums) return;
    std::vector<double> sums(entries_);
    std::vector<float> more(entries_);
    model.for_each_entry([&](std::size_t outside, std::size_t inside) {
      sums[inside] = totals.sums[outside];
      more[inside] = totals.recent[outside];
    });
    const Array<double> earlier(sums);
    const Array<float> recent(more);
    launch_scatter_sums({earlier.data(), recent.data()}, entries_, {lane, 1, lanes()},
                        {earlier_sums_.data(), recent_sums_.data()});
    check_launch("sums were set");
    check(cudaDeviceSynchronize(), "sums were set");
    forget_sums();
  }

 private:
  [[nodiscard]] std::uint32_t lanes() const { return 2 * pairs_; }
  [[nodiscard]] std::size_t size() const { return std::size_t{entries_} * lanes(); }

  /// Before numbers of 32 bits overflow.
  void set_aside() {
    earlier_.resize(size(), 0);
    if (spilled_.empty()) return;
    const std::vector<std::uint32_t> now = spilled_.download();
    for (std::size_t k = 0; k < now.size(); ++k) earlier_[k] += now[k];
    spilled_.clear();
    spilled_sweeps_ = 0;
  }

  // Lanes are copied to the host some at a time.

  template <class T>
  struct Batch {
    std::uint32_t first = 0;
    std::uint32_t end = 0;
    std::vector<T> numbers = {};
    [[nodiscard]] bool has(std::uint32_t lane) const { return lane >= first && lane < end; }
    [[nodiscard]] T* of(std::uint32_t lane) {
      return numbers.data() + (lane - first) * (numbers.size() / (end - first));
    }
  };
  /// Those that are copied together with one of them.
  [[nodiscard]] LaneBatch batch_of(std::uint32_t lane) const {
    const std::size_t most = kBatchBytes / (std::max<std::size_t>(1, entries_) * sizeof(std::uint64_t));
    const auto together = static_cast<std::uint32_t>(std::clamp<std::size_t>(most, 1, 4096));
    const std::uint32_t first = lane / together * together;
    return {first, std::min(together, lanes() - first), lanes()};
  }
  void forget_sums() {
    summed_ = {};
    summed_recently_ = {};
  }

  // In the order of updates. Counts lack the earlier ones that are on the host.
  [[nodiscard]] const std::uint64_t* counts_of(std::uint32_t lane) {
    if (!counted_.has(lane)) {
      const LaneBatch batch = batch_of(lane);
      const Array<std::uint64_t> out(std::size_t{batch.count} * entries_);
      launch_gather_counts(reinterpret_cast<const std::uint8_t*>(recent_counts_.data()), spilled_.data(), entries_,
                           batch, out.data());
      check_launch("counts were gathered");
      counted_ = {batch.first, batch.first + batch.count, out.download()};
    }
    return counted_.of(lane);
  }
  [[nodiscard]] LaneSums sums_of(std::uint32_t lane) {
    if (!summed_.has(lane)) {
      const LaneBatch batch = batch_of(lane);
      const Array<double> earlier(std::size_t{batch.count} * entries_);
      const Array<float> recent(earlier.size());
      launch_gather_sums({earlier_sums_.data(), recent_sums_.data()}, entries_, batch, {earlier.data(), recent.data()});
      check_launch("sums were gathered");
      summed_ = {batch.first, batch.first + batch.count, earlier.download()};
      summed_recently_ = {batch.first, batch.first + batch.count, recent.download()};
    }
    return {summed_.of(lane), summed_recently_.of(lane)};
  }

  std::uint32_t entries_;
  std::uint32_t pairs_;
  Array<std::uint16_t> recent_counts_;
  Array<std::uint32_t> spilled_;
  std::uint64_t recent_sweeps_ = 0;
  std::uint64_t spilled_sweeps_ = 0;
  std::vector<std::uint64_t> earlier_;  // on the host: before numbers of 32 bits overflow, and what was loaded
  Array<float> recent_sums_;
  Array<double> earlier_sums_;
  Batch<std::uint64_t> counted_;
  Batch<double> summed_;
  Batch<float> summed_recently_;
};

/// Levels of all lanes, [position][lane], and a copy on the host for those who want them chain by chain.
class LevelsOnDevice {
 public:
  LevelsOnDevice(const std::uint32_t* positions, std::uint32_t rows, LaneBatch chains)
      : positions_(positions),
        rows_(rows),
        chains_(chains),
        levels_(zeros<std::uint8_t>(std::size_t{rows} * chains.lanes)),
        host_(chains.count, rows) {}

  [[nodiscard]] std::uint16_t* words() const { return reinterpret_cast<std::uint16_t*>(levels_.data()); }
  [[nodiscard]] std::uint8_t* bytes() const { return levels_.data(); }
  /// Levels of one chain, by variable.
  [[nodiscard]] std::span<const Value> get(std::size_t number) const { return host_.row(number, fetch()); }
  void set(std::size_t number, std::span<const Value> levels) {
    std::copy(levels.begin(), levels.end(), host_.row_to_change(number, fetch()).begin());
  }
  /// Before the device looks at them.
  void to_device() const {
    host_.send_changes([&](std::span<const Value> all) {
      for_each_batch([&](Array<std::uint8_t>& some, std::size_t first, const LaneBatch& batch) {
        some.upload(all.subspan(first, std::size_t{batch.count} * rows_));
        launch_scatter_levels(some.data(), positions_, rows_, batch, levels_.data());
        check_launch("levels were set");
        check(cudaDeviceSynchronize(), "levels were set");
      });
    });
  }
  /// After it changed them.
  void changed() { host_.forget(); }
  void get_all(std::span<Value> levels) const {
    if (!host_.is_current()) return copy_out(levels);
    for (std::size_t k = 0; k < chains_.count; ++k) {
      const std::span<const Value> own = get(k);
      std::copy(own.begin(), own.end(), levels.begin() + static_cast<std::ptrdiff_t>(k * rows_));
    }
  }

 private:
  /// Calls use(room on the device, offset of the first level, lanes) for as many chains at a time as take little
  /// memory.
  template <class Use>
  void for_each_batch(Use&& use) const {
    const std::size_t at_a_time = std::clamp<std::size_t>(kBatchBytes / std::max<std::size_t>(1, rows_), 1, 65536);
    Array<std::uint8_t> some(std::min<std::size_t>(at_a_time, chains_.count) * rows_);
    for (std::size_t done = 0; done < chains_.count; done += at_a_time) {
      use(some, done * rows_,
          LaneBatch{static_cast<std::uint32_t>(chains_.first + done),
                    static_cast<std::uint32_t>(std::min(at_a_time, chains_.count - done)), chains_.lanes});
    }
  }
  void copy_out(std::span<Value> levels) const {
    for_each_batch([&](Array<std::uint8_t>& some, std::size_t first, const LaneBatch& batch) {
      launch_gather_levels(levels_.data(), positions_, rows_, batch, some.data());
      check_launch("levels were gathered");
      some.download(levels.subspan(first, std::size_t{batch.count} * rows_));
    });
  }
  [[nodiscard]] std::function<void(std::span<Value>)> fetch() const {
    return [this](std::span<Value> all) { copy_out(all); };
  }

  const std::uint32_t* positions_;
  std::uint32_t rows_;
  LaneBatch chains_;
  Array<std::uint8_t> levels_;
  mutable HostRows<Value> host_;  // [chain][variable]
};

}  // namespace cuda

}  // namespace poise
