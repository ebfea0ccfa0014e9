/// How chains across lanes are spread over a device: chains that stay in a multiprocessor's memory for many sweeps, or
/// the variables of a colour over the whole device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engines/cuda/common/device_shape.hpp"

namespace poise::cuda {

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

}  // namespace poise::cuda
