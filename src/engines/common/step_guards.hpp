/// What keeps steps from being caught, on a device and on the host alike: rests of single changes, the bound on how
/// likely a variable changes by itself, and local steps.
///
/// The kernels of the CPU have the same rules and say why (kernels/step.hpp, factorised_law.hpp, many_changes.hpp).
/// Only when steps are local differs: on a device chains make their steps together, so it is every 32nd step, not one
/// in 32 at random. A sequence of kernels that leave p alone leaves it alone, as a mixture of them does.
#pragma once

#include <cmath>
#include <cstdint>

#include "engines/common/host_device.hpp"

namespace poise::cuda {

/// Random bits as a number between 0 and 1, which acceptance probabilities are compared with.
POISE_BOTH double level_of(std::uint64_t bits) { return plain_product(static_cast<double>(bits) + 0.5, 0x1p-64); }

/// A level is stretched by this where one of so many variables changes: where it is then over 1, the chain rests.
POISE_BOTH double rest_stretch(std::uint32_t moves) { return 1.0 + 1.0 / (moves > 0 ? moves : 1); }

/// A stretched level to be compared with what may be over 1: no acceptance exceeds that of a chain that rests.
POISE_BOTH double resting_level(double level, double stretch) {
  const double stretched = plain_product(level, stretch);
  return stretched < 1.0 ? stretched : HUGE_VAL;
}

/// The largest tau s of a variable, and the same as odds of a change, e^kMostRate - 1, and their logarithm.
inline constexpr double kMostRate = 4.0;
inline constexpr double kMostOdds = 53.598150033144236;
inline constexpr double kLogMostOdds = 3.9815145531741134;

/// The last of so many steps is local, where proposals are of many changes.
inline constexpr std::uint32_t kLocalEvery = 32;
POISE_BOTH bool is_local_step(std::uint64_t step) { return step % kLocalEvery == kLocalEvery - 1; }
/// Steps from here to the next local one, none where this one is.
POISE_BOTH std::uint64_t steps_to_local(std::uint64_t step) { return kLocalEvery - 1 - step % kLocalEvery; }
/// Local ones among the first steps.
POISE_BOTH std::uint64_t local_steps_before(std::uint64_t step) { return step / kLocalEvery; }

/// Single changes that a local step of an RBM tries, one after another: in about the time of another step. Where user
/// code computes log p it is one, for the one evaluation of a step.
POISE_BOTH std::uint32_t local_tries(std::uint32_t variables) { return variables < 64 ? 1 : variables / 64; }

/// One of some variables, by a random word. Whether all are exactly as likely does not matter: what leads back is.
POISE_BOTH std::uint32_t one_of(std::uint32_t variables, std::uint32_t word) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(variables) * word >> 32);
}

}  // namespace poise::cuda
