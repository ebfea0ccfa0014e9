/// Calls of the CUDA runtime that throw, and memory on the device.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "engines/common/host_device.hpp"

namespace poise::cuda {

inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // said once: the next launch has nothing to do with it
  throw std::runtime_error(fmt::format("the GPU failed while {}: {}", what, cudaGetErrorString(status)));
}

/// After a launch.
inline void check_launch(const char* what) { check(cudaGetLastError(), what); }

/// After memory was asked for.
inline void check_allocation(cudaError_t status, std::size_t bytes) {
  constexpr double kGiB = 1073741824.0;
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // an allocation that failed leaves the device usable
  if (status != cudaErrorMemoryAllocation) check(status, "memory was asked for");
  std::size_t left = 0, all = 0;
  static_cast<void>(cudaMemGetInfo(&left, &all));
  throw InputError(fmt::format(
      "the GPU has {:.3g} GiB of memory left, too little for {:.3g} GiB more: take fewer chains, or close what else "
      "runs there",
      static_cast<double>(left) / kGiB, static_cast<double>(bytes) / kGiB));
}

/// An array on the device.
template <class T>
class Array {
 public:
  Array() = default;
  explicit Array(std::size_t size) : size_(size) {
    if (size == 0) return;
    check_allocation(cudaMalloc(reinterpret_cast<void**>(&data_), size * sizeof(T)), size * sizeof(T));
  }
  explicit Array(std::span<const T> values) : Array(values.size()) { upload(values); }
  explicit Array(const std::vector<T>& values) : Array(std::span<const T>(values)) {}
  ~Array() { static_cast<void>(cudaFree(data_)); }
  Array(Array&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Array& operator=(Array&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  void upload(std::span<const T> values, std::size_t first = 0) {
    if (values.empty()) return;
    check(cudaMemcpy(data_ + first, values.data(), values.size_bytes(), cudaMemcpyHostToDevice),
          "data were copied to it");
  }
  void download(std::span<T> values) const {
    if (values.empty()) return;
    check(cudaMemcpy(values.data(), data_, values.size_bytes(), cudaMemcpyDeviceToHost), "data were copied from it");
  }
  void clear() {
    if (size_ > 0) check(cudaMemset(data_, 0, size_ * sizeof(T)), "memory was cleared");
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Numbers on the host that the device can write while it goes on.
template <class T>
class PinnedArray {
 public:
  PinnedArray() = default;
  explicit PinnedArray(std::size_t size) : size_(size) {
    check(cudaMallocHost(reinterpret_cast<void**>(&data_), size * sizeof(T)), "memory of the host was pinned");
  }
  ~PinnedArray() { static_cast<void>(cudaFreeHost(data_)); }
  PinnedArray(PinnedArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  PinnedArray& operator=(PinnedArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A point in what the device has been asked to do.
class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "an event was made"); }
  ~Event() { static_cast<void>(cudaEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "an event was recorded"); }
  void wait(const char* what) { check(cudaEventSynchronize(event_), what); }
  /// Has a stream wait for what was recorded.
  void hold(cudaStream_t stream) { check(cudaStreamWaitEvent(stream, event_, 0), "a stream was to wait"); }

 private:
  cudaEvent_t event_ = nullptr;
};

inline DeviceShape this_device() {
  int number = 0, multiprocessors = 0, of_block = 0, of_multiprocessor = 0;
  check(cudaGetDevice(&number), "its number was asked for");
  const auto ask = [&](int& value, cudaDeviceAttr what) {
    check(cudaDeviceGetAttribute(&value, what, number), "its size was asked for");
  };
  ask(multiprocessors, cudaDevAttrMultiProcessorCount);
  ask(of_block, cudaDevAttrMaxSharedMemoryPerBlockOptin);
  ask(of_multiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  return {static_cast<unsigned>(multiprocessors), static_cast<std::size_t>(of_block),
          static_cast<std::size_t>(of_multiprocessor)};
}

// States of chains on the device, with a copy on the host that is made when it is asked for.

/// Rows of words, one for each chain. Rows of different chains may be handled by different threads at the same time,
/// while the device does not work on them.
class MirroredWords {
 public:
  MirroredWords(std::size_t rows, std::size_t words) : words_(words), device_(rows * words), host_(rows * words, 0) {
    device_.clear();
  }

  [[nodiscard]] std::uint32_t* on_device() const { return device_.data(); }
  [[nodiscard]] std::size_t words() const { return words_; }

  /// To be called before the device reads rows, and where it writes them: what the host has is old then. Says whether
  /// rows were changed on the host.
  bool to_device(bool writes) {
    const bool newer = host_is_newer_;
    if (newer) device_.upload(host_);
    host_is_newer_ = false;
    if (writes) host_is_current_ = false;
    return newer;
  }
  [[nodiscard]] std::span<const std::uint32_t> row(std::size_t row) {
    to_host();
    return {host_.data() + row * words_, words_};
  }
  [[nodiscard]] std::span<std::uint32_t> row_to_change(std::size_t row) {
    to_host();
    host_is_newer_ = true;
    return {host_.data() + row * words_, words_};
  }

 private:
  void to_host() {
    if (host_is_current_) return;
    const std::lock_guard lock(mutex_);
    if (host_is_current_) return;
    device_.download(host_);
    host_is_current_ = true;
  }

  std::size_t words_;
  Array<std::uint32_t> device_;
  std::mutex mutex_;
  std::vector<std::uint32_t> host_;
  std::atomic<bool> host_is_current_ = true;
  std::atomic<bool> host_is_newer_ = false;
};

}  // namespace poise::cuda
