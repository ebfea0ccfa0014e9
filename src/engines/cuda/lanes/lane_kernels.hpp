/// What kernels of chains across lanes work on, as it lies in the memory of the device, and how they are started.
///
/// Levels are words of two chains, [position][pair]: lane 2p has the low byte of word p.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engines/common/host_device.hpp"
#include "engines/cuda/lanes/lane_chains.hpp"
#include "engines/cuda/lanes/lane_update.hpp"

namespace poise::cuda {

// How chains are spread over a device: chains that stay in a multiprocessor's memory for many sweeps, or the
// variables of a colour over the whole device.

/// What a plan depends on.
struct LaneShape {
  std::size_t pairs = 0;                    ///< of chains
  std::size_t rows = 0;                     ///< words that each pair keeps: levels, and counts where there are any
  std::size_t image_bytes = 0;              ///< of the model
  std::vector<std::uint32_t> colours = {};  ///< first position of each, and the end of the last
};

struct LanePlan {
  bool resident = false;         ///< whether levels stay in shared memory
  unsigned pairs = 32;           ///< of chains, for each block
  unsigned threads = 512;        ///< of a block
  bool image_in_shared = false;  ///< whether the model is there too
  std::size_t shared_bytes = 0;  ///< of a block
  double microseconds = 0.0;     ///< of a sweep, roughly
};

// Estimates, to choose among plans by. An update waits for a few loads, one after the other, and takes some two hundred
// instructions, of which a multiprocessor issues four at a time.
inline constexpr double kUpdateMicroseconds = 0.4;  // of waiting
inline constexpr double kIssueMicroseconds = 0.03;  // of a warp
// Warps whose lanes have several variables take as long as the longest of them.
inline constexpr double kDivergence = 1.15;      // for each halving of the chains
inline constexpr double kImageElsewhere = 1.15;  // loads that take longer
inline constexpr double kLaunchMicroseconds = 4.0;
inline constexpr double kSpreadUpdates = 1e5;  // a microsecond, of a device that is full

/// Variables of all colours over the device, a launch for each colour.
inline LanePlan plan_spread(const LaneShape& shape) {
  LanePlan plan;
  plan.threads = 256;
  constexpr std::size_t kMostBlocks = 65535;  // side by side
  while (plan.pairs > 1 && plan.pairs / 2 >= shape.pairs) plan.pairs /= 2;
  while (plan.pairs < plan.threads && shape.pairs / plan.pairs >= kMostBlocks) plan.pairs *= 2;
  const double updates = 2.0 * static_cast<double>(shape.pairs) * shape.colours.back();
  plan.microseconds = kLaunchMicroseconds * static_cast<double>(shape.colours.size() - 1) + updates / kSpreadUpdates;
  return plan;
}

/// So many pairs of chains in the memory of a block, if they fit.
inline LanePlan plan_resident(const LaneShape& shape, const DeviceShape& device, unsigned pairs, bool image) {
  constexpr std::size_t kReserved = 1024;  // of each block, by the system
  LanePlan plan;
  plan.pairs = pairs;
  plan.image_in_shared = image;
  plan.shared_bytes = (shape.rows * pairs * sizeof(std::uint16_t) + 15) / 16 * 16 + (image ? shape.image_bytes : 0);
  plan.resident = plan.shared_bytes <= device.shared_per_block;
  if (!plan.resident) return plan;
  const std::size_t blocks = (shape.pairs + pairs - 1) / pairs;
  const std::size_t fit = device.shared_per_multiprocessor / (plan.shared_bytes + kReserved);
  const bool alone = fit < 2 || blocks <= device.multiprocessors;
  plan.threads = alone ? 1024 : 512;
  const std::size_t here = alone ? 1 : 2;  // blocks of a multiprocessor
  const unsigned slots = plan.threads / pairs;
  double issue = kIssueMicroseconds * static_cast<double>(here) * pairs / 32.0;
  for (unsigned p = pairs; p < 32; p *= 2) issue *= kDivergence;
  for (std::size_t k = 0; k + 1 < shape.colours.size(); ++k) {
    const std::uint32_t size = shape.colours[k + 1] - shape.colours[k];
    const double rounds = (size + slots - 1) / slots;
    plan.microseconds += rounds * kUpdateMicroseconds * (image ? 1.0 : kImageElsewhere) + size * issue;
  }
  const std::size_t waves = (blocks + device.multiprocessors * here - 1) / (device.multiprocessors * here);
  plan.microseconds *= static_cast<double>(waves);
  return plan;
}

/// The fastest, by these estimates.
inline LanePlan plan_lanes(const LaneShape& shape, const DeviceShape& device) {
  LanePlan best = plan_spread(shape);
  for (const unsigned pairs : {32U, 16U, 8U, 4U, 2U}) {
    for (const bool image : {true, false}) {
      const LanePlan plan = plan_resident(shape, device, pairs, image);
      if (plan.resident && plan.microseconds < best.microseconds) best = plan;
    }
  }
  return best;
}

/// A LaneImage as one piece of memory.
struct PackedImage {
  const unsigned char* bytes;
  std::size_t size;                          ///< a multiple of 16
  std::size_t pairs, terms, others, tables;  ///< where they begin; variables come first
  bool has_zeros;                            ///< whether numbers of zeros are there too
  std::size_t zeros, zero_tables;
};

/// Heated lanes: the replicas of ladders one after the other, each at the temperature of its rung.
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
  POISE_BOTH std::uint16_t* slot(std::uint32_t sweep) const {
    return states + ((made + sweep + 1) / every - 1) * words;
  }
};

struct LaneTileView {
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
template <bool kHeated>
[[nodiscard]] bool launch_resident(const LaneTileView& view, const LanePlan& plan, std::uint64_t first_sweep,
                                   std::uint32_t sweeps);
/// The variables of one colour, from position `first` up to `end`, in a sweep.
template <bool kHeated>
void launch_colour(const LaneTileView& view, const LanePlan& plan, std::uint64_t sweep, std::uint32_t first,
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
/// [lane of the batch][row], from [row][lane]; `row_of` says which row is whose, and may be null.
void launch_gather_levels(const std::uint8_t* levels, const std::uint32_t* row_of, std::uint32_t rows, LaneBatch batch,
                          std::uint8_t* out);
void launch_scatter_levels(const std::uint8_t* in, const std::uint32_t* row_of, std::uint32_t rows, LaneBatch batch,
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

// Sums over the states of draws, as they lie in memory: on a device, and on the host, which fetches them.

/// Numbers of draws, one after the other: of all lanes of a draw log p in units, then variables that are not as in the
/// reference, then those at one level.
struct DrawSums {
  unsigned char* bytes;
  std::uint32_t lanes;

  /// Bytes of a draw.
  POISE_BOTH static std::size_t size(std::uint32_t lanes) { return 16 * static_cast<std::size_t>(lanes); }
  POISE_BOTH double* units(std::size_t draw) const { return reinterpret_cast<double*>(bytes + draw * size(lanes)); }
  POISE_BOTH std::uint32_t* different(std::size_t draw) const {
    return reinterpret_cast<std::uint32_t*>(units(draw) + lanes);
  }
  POISE_BOTH std::uint32_t* at_level(std::size_t draw) const { return different(draw) + lanes; }
};

struct SumsOfDraws {
  ExactView exact;
  std::uint32_t factors;
  const std::uint8_t* states;  ///< [draw][position][lane]
  std::size_t bytes;           ///< of the state of a draw
  std::uint32_t draws;
  std::uint32_t lanes;
  std::uint32_t positions;
  std::uint32_t most_levels;
  const std::uint8_t* reference;  ///< by position, or null
  DrawSums out;
};
/// Log p one factor after the other, as the CPU adds them up, minus infinity where one is zero; and how many variables
/// are at the most frequent level.
void launch_sums_in_order(const SumsOfDraws& view);
/// Log p in integers, for which the order does not matter; and how many variables are at level 1.
void launch_sums_in_integers(const SumsOfDraws& view);

}  // namespace poise::cuda
