/// Calls of the CUDA runtime that throw, and memory on the device.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/types.hpp>
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

/// What the runtime has made and gets back at the end.
template <auto give_back>
struct GivesBack {
  void operator()(auto* what) const { static_cast<void>(give_back(what)); }
};
template <class Pointer, auto give_back>
using Owned = std::unique_ptr<std::remove_pointer_t<Pointer>, GivesBack<give_back>>;

/// An array on the device.
template <class T>
class Array {
 public:
  Array() = default;
  explicit Array(std::size_t size) : size_(size) {
    if (size == 0) return;
    void* data = nullptr;
    check_allocation(cudaMalloc(&data, size * sizeof(T)), size * sizeof(T));
    data_.reset(static_cast<T*>(data));
  }
  explicit Array(std::span<const T> values) : Array(values.size()) { upload(values); }
  explicit Array(const std::vector<T>& values) : Array(std::span<const T>(values)) {}

  [[nodiscard]] T* data() const { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  void upload(std::span<const T> values, std::size_t first = 0) {
    if (values.empty()) return;
    check(cudaMemcpy(data() + first, values.data(), values.size_bytes(), cudaMemcpyHostToDevice),
          "data were copied to it");
  }
  void download(std::span<T> values, std::size_t first = 0) const {
    if (values.empty()) return;
    check(cudaMemcpy(values.data(), data() + first, values.size_bytes(), cudaMemcpyDeviceToHost),
          "data were copied from it");
  }
  [[nodiscard]] std::vector<T> download() const { return download(0, size_); }
  [[nodiscard]] std::vector<T> download(std::size_t first, std::size_t count) const {
    std::vector<T> values(count);
    download(values, first);
    return values;
  }
  void clear() {
    if (size_ > 0) check(cudaMemset(data(), 0, size_ * sizeof(T)), "memory was cleared");
  }

 private:
  Owned<T*, cudaFree> data_;
  std::size_t size_ = 0;
};

template <class T>
[[nodiscard]] Array<T> zeros(std::size_t size) {
  Array<T> array(size);
  array.clear();
  return array;
}

/// Numbers on the host that the device can write while it works.
template <class T>
using PinnedArray = Owned<T*, cudaFreeHost>;
template <class T>
[[nodiscard]] PinnedArray<T> pinned(std::size_t size) {
  void* data = nullptr;
  check(cudaMallocHost(&data, size * sizeof(T)), "memory of the host was pinned");
  return PinnedArray<T>(static_cast<T*>(data));
}

/// A point in what the device has been asked to do.
class Event {
 public:
  Event() {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event was made");
    event_.reset(event);
  }

  void record(cudaStream_t stream) { check(cudaEventRecord(event_.get(), stream), "an event was recorded"); }
  void wait(const char* what) { check(cudaEventSynchronize(event_.get()), what); }
  /// Has a stream wait for what was recorded.
  void hold(cudaStream_t stream) { check(cudaStreamWaitEvent(stream, event_.get(), 0), "a stream was to wait"); }

 private:
  Owned<cudaEvent_t, cudaEventDestroy> event_;
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

/// Levels of two-valued variables as bits; those of variable i are at offset_of(i).
template <class OffsetOf = std::identity>
void pack_bits(std::span<const Value> levels, std::span<std::uint32_t> words, OffsetOf&& offset_of = {}) {
  std::fill(words.begin(), words.end(), 0U);
  for (Index i = 0; i < levels.size(); ++i) {
    const std::size_t offset = offset_of(i);
    words[offset / 32] |= std::uint32_t{levels[i] != 0} << offset % 32;
  }
}
template <class OffsetOf = std::identity>
[[nodiscard]] Array<std::uint32_t> bits_on_device(std::span<const Value> levels, std::size_t words,
                                                  OffsetOf&& offset_of = {}) {
  std::vector<std::uint32_t> bits(words);
  pack_bits(levels, bits, offset_of);
  return Array<std::uint32_t>(bits);
}
template <class OffsetOf>
void unpack_bits(std::span<const std::uint32_t> words, std::span<Value> levels, OffsetOf&& offset_of) {
  for (Index i = 0; i < levels.size(); ++i) {
    const std::size_t offset = offset_of(i);
    levels[i] = static_cast<Value>(words[offset / 32] >> offset % 32 & 1U);
  }
}
/// Where they are side by side, eight at a time.
inline void unpack_bits(std::span<const std::uint32_t> words, std::span<Value> levels) {
  static constexpr auto kLevelsOfBytes = [] {
    std::array<std::array<Value, 8>, 256> out{};
    for (std::size_t byte = 0; byte < out.size(); ++byte) {
      for (std::size_t k = 0; k < 8; ++k) out[byte][k] = static_cast<Value>(byte >> k & 1U);
    }
    return out;
  }();
  std::size_t i = 0;
  for (; i + 8 <= levels.size(); i += 8) {
    std::copy_n(kLevelsOfBytes[words[i / 32] >> i % 32 & 0xffU].begin(), 8, levels.data() + i);
  }
  for (; i < levels.size(); ++i) levels[i] = static_cast<Value>(words[i / 32] >> i % 32 & 1U);
}

/// The copy: rows of numbers, one for each chain, zeros at first as on the device. Rows of different chains may be
/// handled by different threads at the same time, while the device does not work on them.
template <class T>
class HostRows {
 public:
  HostRows(std::size_t rows, std::size_t width) : width_(width), all_(rows * width, 0) {}

  [[nodiscard]] std::size_t width() const { return width_; }
  [[nodiscard]] bool is_current() const { return sync_->is_current; }
  /// What there is here is old: the device has written.
  void forget() { sync_->is_current = false; }

  /// fetch(all) copies all rows from the device, where those here are old.
  template <class Fetch>
  [[nodiscard]] std::span<const T> row(std::size_t number, Fetch&& fetch) {
    return current(number, fetch);
  }
  template <class Fetch>
  [[nodiscard]] std::span<T> row_to_change(std::size_t number, Fetch&& fetch) {
    const std::span<T> own = current(number, fetch);
    sync_->is_newer = true;
    return own;
  }
  /// Calls send(all), which copies all rows to the device, if any were changed since then. Says whether.
  template <class Send>
  bool send_changes(Send&& send) {
    if (!sync_->is_newer) return false;
    send(std::span<const T>(all_));
    sync_->is_newer = false;
    return true;
  }

 private:
  template <class Fetch>
  [[nodiscard]] std::span<T> current(std::size_t number, Fetch& fetch) {
    if (!sync_->is_current) {
      const std::lock_guard lock(sync_->mutex);
      if (!sync_->is_current) fetch(std::span<T>(all_));
      sync_->is_current = true;
    }
    return std::span<T>(all_).subspan(number * width_, width_);
  }

  /// Behind a pointer, so that rows can be moved.
  struct Sync {
    std::mutex mutex;
    std::atomic<bool> is_current = true;
    std::atomic<bool> is_newer = false;
  };

  std::size_t width_;
  std::vector<T> all_;
  std::unique_ptr<Sync> sync_ = std::make_unique<Sync>();
};

/// Rows of words.
class MirroredWords {
 public:
  MirroredWords(std::size_t rows, std::size_t words)
      : device_(zeros<std::uint32_t>(rows * words)), host_(rows, words) {}

  [[nodiscard]] std::uint32_t* on_device() const { return device_.data(); }
  [[nodiscard]] std::size_t words() const { return host_.width(); }

  /// To be called before the device reads rows, and where it writes them: what the host has is old then. Says whether
  /// rows were changed on the host.
  bool to_device(bool writes) {
    const bool newer = host_.send_changes([&](auto all) { device_.upload(all); });
    if (writes) host_.forget();
    return newer;
  }
  [[nodiscard]] std::span<const std::uint32_t> row(std::size_t row) {
    return host_.row(row, [&](auto all) { device_.download(all); });
  }
  [[nodiscard]] std::span<std::uint32_t> row_to_change(std::size_t row) {
    return host_.row_to_change(row, [&](auto all) { device_.download(all); });
  }

 private:
  Array<std::uint32_t> device_;
  HostRows<std::uint32_t> host_;
};

}  // namespace poise::cuda
