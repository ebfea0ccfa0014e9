/// What kernels of chains across lanes work on, as it lies in the memory of the device, and how they are started.
///
/// Levels are words of two chains, [position][pair]: lane 2p has the low byte of word p.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/cuda/lanes/lane_plan.hpp"
#include "engines/cuda/lanes/lane_update.hpp"

namespace poise::cuda {

/// A LaneImage as one piece of memory.
struct PackedImage {
  const unsigned char* bytes;
  std::size_t size;                          ///< a multiple of 16
  std::size_t pairs, terms, others, tables;  ///< where they begin; variables come first
  bool has_zeros;                            ///< whether numbers of zeros are there too
  std::size_t zeros, zero_tables;
};

/// Of ladders, whose replicas are lanes one after the other, each at the temperature of its rung.
struct HeatView {
  const std::uint8_t* rung_of;  ///< of each lane
  const RungHeat* heats;        ///< of each rung
  std::uint32_t rungs;
  std::uint32_t sums_stride;  ///< from the sums of one entry to those of the next: [entry][ladder]
};

/// Where states go while chains move, one after every so many sweeps.
struct LaneRecord {
  std::uint16_t* states;  ///< [draw][position][pair], or null
  std::size_t words;      ///< of a state
  std::uint64_t every;
  std::uint64_t made;  ///< sweeps before those of a launch, since the first draw was begun

  /// Whether a sweep of the launch ends a draw.
  POISE_BOTH bool is_due(std::uint32_t sweep) const { return states != nullptr && (made + sweep + 1) % every == 0; }
  POISE_BOTH std::uint16_t* place(std::uint32_t sweep) const {
    return states + ((made + sweep + 1) / every - 1) * words;
  }
};

struct LaneBlockView {
  PackedImage image;
  ExactView exact;
  const std::uint32_t* colours;  ///< first position of each, and the end of the last
  std::uint32_t num_colours;
  std::uint16_t* levels;  ///< [position][pair]
  std::uint16_t* counts;  ///< [entry][pair], or null
  float* sums;            ///< [entry][lane], or null
  const PairKey* keys;    ///< of each pair
  std::uint32_t pairs;
  std::uint32_t first_lane;  ///< that is a chain
  std::uint32_t end_lane;
  std::uint32_t positions;  ///< that are updated, and that updates look at
  std::uint32_t entries;
  std::uint64_t words;  ///< random ones, of a sweep
  bool two_levels;      ///< whether no variable has more
  HeatView heat = {};   ///< of heated lanes, whose sums are those of ladders and which count nothing here
  LaneRecord record = {};
};

/// Sweeps of chains that stay in shared memory, all in one launch. False where the device refuses so much of it.
[[nodiscard]] bool launch_resident(const LaneBlockView& view, const LanePlan& plan, std::uint64_t first_sweep,
                                   std::uint32_t sweeps);
/// The variables of one colour, from position `first` up to `end`, in a sweep.
void launch_colour(const LaneBlockView& view, const LanePlan& plan, std::uint64_t sweep, std::uint32_t first,
                   std::uint32_t end);

/// The same with heated lanes.
[[nodiscard]] bool launch_heated_resident(const LaneBlockView& view, const LanePlan& plan, std::uint64_t first_sweep,
                                          std::uint32_t sweeps);
void launch_heated_colour(const LaneBlockView& view, const LanePlan& plan, std::uint64_t sweep, std::uint32_t first,
                          std::uint32_t end);

/// Adds bytes of counts to [entry][lane] and clears them.
void launch_spill_counts(std::uint16_t* counts, std::uint32_t* spilled, std::size_t size);
/// Adds floats to doubles and clears them.
void launch_spill_sums(float* sums, double* earlier, std::size_t size);

/// Lanes of a batch, one after the other, for the host.
struct LaneBatch {
  std::uint32_t first;
  std::uint32_t count;
  std::uint32_t lanes;  ///< of all rows
};
/// [lane of the batch][row], from [row][lane]; `place` says which row is whose, and may be null.
void launch_gather_levels(const std::uint8_t* levels, const std::uint32_t* place, std::uint32_t rows, LaneBatch batch,
                          std::uint8_t* out);
void launch_scatter_levels(const std::uint8_t* in, const std::uint32_t* place, std::uint32_t rows, LaneBatch batch,
                           std::uint8_t* levels);
void launch_gather_counts(const std::uint8_t* recent, const std::uint32_t* spilled, std::uint32_t rows, LaneBatch batch,
                          std::uint64_t* out);
/// Sums of conditional probabilities: earlier ones, and recent ones that are not yet among them.
struct LaneSums {
  double* earlier;
  float* recent;
};
void launch_gather_sums(const LaneSums& from, std::uint32_t rows, LaneBatch batch, const LaneSums& out);
void launch_scatter_sums(const LaneSums& in, std::uint32_t rows, LaneBatch batch, const LaneSums& to);

/// What energies are summed from.
struct FactorsView {
  ExactView exact;
  std::uint32_t factors;
  const std::uint8_t* levels;  ///< [position][lane]
  std::uint32_t lanes;
};
}  // namespace poise::cuda
