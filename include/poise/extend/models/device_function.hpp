/// User code on a GPU: states and numbers stay in device memory. Compiled for host and device, as C++17.
///
/// Pointers are device pointers, and a stream is one of the CUDA runtime.
#pragma once

#include <cstddef>

namespace poise {

/// Floats, or doubles, one after another.
struct DeviceNumbers {
  const void* data = nullptr;
  bool is_double = false;
};

/// What code says of a batch of states. It lasts until the next call of `evaluate`.
struct DeviceAnswers {
  DeviceNumbers log_prob;  ///< of each state
  DeviceNumbers gradient;  ///< as BatchFunction::gradient has it, state after state
};

/// Where a batch of states is to be written, as floats or doubles that stand for their levels.
struct DeviceRoom {
  void* data = nullptr;
  bool is_double = false;
};

/// The GPU counterpart of a BatchFunction, which the same code also is.
class DeviceFunction {
 public:
  virtual ~DeviceFunction() = default;

  /// Whether it works on `stream`. Otherwise it works elsewhere: the caller waits until the stream has done what
  /// it was asked for, and what it answers is finished.
  [[nodiscard]] virtual bool shares_stream() const { return true; }
  /// The stream that the caller's work goes to.
  [[nodiscard]] virtual void* stream() = 0;

  /// For so many states, which `evaluate` is asked about next.
  virtual DeviceRoom room(std::size_t states) = 0;
  /// log p and its gradient at the states in the room. What it throws ends the run. NaN and the like are for the caller
  /// to refuse.
  virtual DeviceAnswers evaluate() = 0;
};

}  // namespace poise
