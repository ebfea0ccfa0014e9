/// States of chains on the device, with a copy on the host that is made when it is asked for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "engines/cuda/common/call.hpp"

namespace poise::cuda {

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
