/// Batches of states of user code, and its answers: how levels are written, gradients read, and mistakes found.
#pragma once

#include <cstddef>
#include <cstdint>

#include <poise/extend/models/device_function.hpp>
#include "engines/common/host_device.hpp"

namespace poise::cuda {

/// How user code sees variables of two levels: as one of two labels, or as a pair with a one at the level.
struct UserShape {
  std::uint32_t variables;
  bool one_hot;
  double low;
  double high;
};

POISE_BOTH double number_at(const DeviceNumbers& numbers, std::size_t offset) {
  return numbers.is_double ? static_cast<const double*>(numbers.data)[offset]
                           : static_cast<double>(static_cast<const float*>(numbers.data)[offset]);
}

POISE_BOTH void write_number(const DeviceRoom& room, std::size_t offset, double number) {
  if (room.is_double) {
    static_cast<double*>(room.data)[offset] = number;
  } else {
    static_cast<float*>(room.data)[offset] = static_cast<float>(number);
  }
}

/// The level of a variable of a state.
POISE_BOTH void write_level(const UserShape& shape, const DeviceRoom& room, std::size_t offset, bool up) {
  if (shape.one_hot) {
    write_number(room, 2 * offset, up ? 0.0 : 1.0);
    write_number(room, 2 * offset + 1, up ? 1.0 : 0.0);
  } else {
    write_number(room, offset, up ? shape.high : shape.low);
  }
}

/// Whether it is neither infinite nor NaN.
POISE_BOTH bool is_finite(double number) { return number - number == 0.0; }

/// What log p grows by from the lower level of a variable to the upper one, to first order. Beyond all that matters it
/// ends, so that sums and differences of floats stay finite; what is not finite counts as 0.
POISE_BOTH float derivative_at(const UserShape& shape, const DeviceNumbers& gradient, std::size_t offset,
                               bool& finite) {
  constexpr double kSteepest = 1e30;
  const double derivative = shape.one_hot ? number_at(gradient, 2 * offset + 1) - number_at(gradient, 2 * offset)
                                          : number_at(gradient, offset) * (shape.high - shape.low);
  finite = is_finite(derivative);
  if (!finite) return 0.0F;
  return static_cast<float>(derivative > kSteepest ? kSteepest : derivative < -kSteepest ? -kSteepest : derivative);
}

/// What was wrong first with the answer about a state, and its row in the batch: the least of such numbers is kept.
enum class UserFailure : std::uint64_t { nan = 0, infinite = 1, gradient = 2 };
inline constexpr std::uint64_t kNoFailure = ~std::uint64_t{0};

POISE_BOTH std::uint64_t failure_of(double log_prob, bool finite_gradient, std::uint32_t row) {
  UserFailure what = UserFailure::gradient;
  if (log_prob != log_prob) {
    what = UserFailure::nan;
  } else if (log_prob > 0.0 && !is_finite(log_prob)) {
    what = UserFailure::infinite;
  } else if (!is_finite(log_prob) || finite_gradient) {
    return kNoFailure;  // where the probability is zero the gradient is not read
  }
  return static_cast<std::uint64_t>(what) << 32 | row;
}

}  // namespace poise::cuda
