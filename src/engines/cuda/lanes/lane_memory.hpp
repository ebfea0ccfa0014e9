/// What a tile of chains across lanes has in the memory of the device: the model, levels, and what is counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engines/cuda/common/call.hpp"
#include "engines/cuda/common/draw_batches.hpp"
#include "engines/cuda/common/launch_graph.hpp"
#include "engines/cuda/lanes/lane_kernels.hpp"
#include "engines/cuda/lanes/lane_tile.hpp"

namespace poise::cuda {

/// A LaneImage and ExactTables on the device.
class ModelOnDevice {
 public:
  explicit ModelOnDevice(const CudaLaneModel& from);
  [[nodiscard]] const LaneImage& image() const { return image_; }
  [[nodiscard]] PackedImage packed() const;
  [[nodiscard]] ExactView exact() const;
  [[nodiscard]] std::uint32_t factors() const { return static_cast<std::uint32_t>(factors_.size()); }
  [[nodiscard]] const std::uint32_t* colours() const { return colours_.data(); }
  [[nodiscard]] const std::uint32_t* positions() const { return positions_.data(); }
  [[nodiscard]] const std::uint8_t* reference() const { return reference_.data(); }
  [[nodiscard]] std::size_t image_bytes() const { return bytes_.size(); }
  /// The end of the positions that updates look at or change.
  [[nodiscard]] std::uint32_t used_positions() const { return used_positions_; }
  [[nodiscard]] std::uint32_t most_levels() const { return most_levels_; }
  [[nodiscard]] CudaLogSums log_sums() const { return log_sums_; }
  [[nodiscard]] const LaneModel& host() const { return *host_; }

  /// Calls `use` with the number of each entry in the order of variables, and in that of updates.
  template <class Use>
  void for_each_entry(Use&& use) const {
    for (const ImageVariable& variable : image_.variables) {
      const Index first = host_->entries()[variable.variable];
      for (Index level = 1; level < variable.levels; ++level) use(first + level - 1, variable.entry + level - 1);
    }
  }
  /// What sweeps read of the model; the rest is still to be filled in.
  [[nodiscard]] LaneTileView view() const;

 private:
  [[nodiscard]] bool has_zeros() const { return !image_.zeros.empty(); }

  std::shared_ptr<const LaneModel> host_;
  LaneImage image_;
  std::size_t pairs_at_ = 0, terms_at_ = 0, others_at_ = 0, tables_at_ = 0, zeros_at_ = 0, zero_tables_at_ = 0;
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

  void reset_counts();
  void reset_sums();
  [[nodiscard]] std::uint16_t* counts() const { return recent_counts_.data(); }
  [[nodiscard]] float* sums() const { return recent_sums_.data(); }
  /// Adds recent ones to the earlier ones.
  void spill();
  /// Says that more was counted: copies on the host are old.
  void changed(std::uint64_t sweeps);

  // Totals of one lane, in the order of updates.
  [[nodiscard]] std::vector<std::uint64_t> counts_of(std::uint32_t lane);
  struct Sums {
    std::vector<double> earlier;
    std::vector<float> recent;
  };
  [[nodiscard]] Sums sums_of(std::uint32_t lane);
  void set_counts(std::uint32_t lane, std::span<const std::uint64_t> counts);
  void set_sums(std::uint32_t lane, const Sums& sums);

  /// Which of them there are.
  struct Kept {
    bool counts;
    bool sums;
  };
  // Totals of one lane, in the order of variables.
  [[nodiscard]] LaneTotals get(std::uint32_t lane, Kept kept, const ModelOnDevice& model);
  void set(std::uint32_t lane, Kept kept, const ModelOnDevice& model, const LaneTotals& totals);

 private:
  [[nodiscard]] std::uint32_t lanes() const { return 2 * pairs_; }
  [[nodiscard]] std::size_t size() const { return std::size_t{entries_} * lanes(); }
  /// Lanes that are copied to the host together with one of them.
  [[nodiscard]] LaneBatch batch_of(std::uint32_t lane) const;
  void set_aside();

  std::uint32_t entries_;
  std::uint32_t pairs_;
  Array<std::uint16_t> recent_counts_;
  Array<std::uint32_t> spilled_;
  std::uint64_t recent_sweeps_ = 0;
  std::uint64_t spilled_sweeps_ = 0;
  std::vector<std::uint64_t> earlier_;  // on the host: before numbers of 32 bits overflow, and what was loaded
  Array<float> recent_sums_;
  Array<double> earlier_sums_;

  template <class T>
  struct Batch {
    std::uint32_t first = 0;
    std::uint32_t end = 0;
    std::vector<T> numbers;
    [[nodiscard]] bool has(std::uint32_t lane) const { return lane >= first && lane < end; }
  };
  Batch<std::uint64_t> counted_;
  Batch<double> summed_;
  Batch<float> summed_recently_;
};

/// Levels of all lanes, [position][lane], and a copy on the host for those who want them chain by chain.
class LevelsOnDevice {
 public:
  LevelsOnDevice(const std::uint32_t* positions, std::uint32_t rows, LaneBatch chains);
  [[nodiscard]] std::uint16_t* words() const { return reinterpret_cast<std::uint16_t*>(levels_.data()); }
  [[nodiscard]] const std::uint8_t* bytes() const { return levels_.data(); }
  /// Levels of one chain, by variable.
  [[nodiscard]] std::span<const Value> get(std::size_t number) const;
  void set(std::size_t number, std::span<const Value> levels);
  /// Before the device looks at them.
  void to_device() const;
  /// After it changed them.
  void changed() { host_is_current_ = false; }
  void get_all(std::span<Value> levels) const;

 private:
  void to_host() const;
  void copy_out(std::span<Value> levels) const;

  const std::uint32_t* positions_;
  std::uint32_t rows_;
  LaneBatch chains_;
  Array<std::uint8_t> levels_;
  mutable std::mutex mutex_;
  mutable std::vector<Value> host_;  // [chain][variable]
  mutable std::atomic<bool> host_is_current_ = false;
  mutable std::atomic<bool> host_is_newer_ = false;
};

// Draws on the device: their states side by side, and sums of these for the host.

class LaneRecording {
 public:
  /// Records states that have so many rows, [position][lane]; `lanes` says which of them are chains.
  LaneRecording(const ModelOnDevice& model, std::uint32_t rows, LaneBatch lanes);

  /// Draws of a batch: as many as take little memory.
  [[nodiscard]] std::size_t draws() const { return draws_; }
  /// Bytes of a state.
  [[nodiscard]] std::size_t bytes() const { return std::size_t{rows_} * lanes_.lanes; }
  /// Room for the states of a batch, one after the other.
  [[nodiscard]] std::uint8_t* states();

  /// Has the device sum so many states, one after the other, once it has made them; a batch takes the
  /// slot of the one kSlots before.
  void start(const std::uint8_t* states, std::size_t draws, std::size_t batch);
  void wait(std::size_t batch) { done_[batch % kSlots].wait("states were summed"); }
  /// Sums of a draw of a batch that was waited for.
  [[nodiscard]] CudaLaneSums sums(std::size_t batch, std::size_t draw) const;

  /// So many draws, in batches that start(batch, size) has the device begin with: calls use(draw, sums), on any thread.
  void run(std::size_t draws, const std::function<void(std::size_t batch, std::size_t size)>& start,
           const std::function<void(std::size_t draw, const CudaLaneSums& sums)>& use);

 private:
  void make_room(std::size_t draws);

  const ModelOnDevice& model_;
  std::uint32_t rows_;
  LaneBatch lanes_;
  std::size_t draws_;
  Array<std::uint8_t> states_;
  static constexpr std::size_t kSlots = 2;  // of batches
  Array<unsigned char> found_;              // [slot]
  PinnedArray<unsigned char> host_;
  CudaStream copying_{StreamOrder::apart};  // while the device goes on in the default stream
  Event summed_[kSlots];
  Event done_[kSlots];
  std::unique_ptr<DrawBatches> batches_;
};

}  // namespace poise::cuda
