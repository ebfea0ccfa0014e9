/// Annealing and enumeration, the two ways to the partition function of an RBM, and their progress.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <poise/log_partition.hpp>
#include "base/thread_pool.hpp"
#include "models/rbm/rbm.hpp"

namespace poise::log_partition_parts {

/// Counts parts of the work on any thread; the thread that made it reports them.
class Meter {
 public:
  Meter(const char* what, double total, const LogPartitionHooks& hooks)
      : what_(what), total_(total), hooks_(hooks), owner_(std::this_thread::get_id()) {}

  [[nodiscard]] bool stopped() const { return hooks_.stop != nullptr && hooks_.stop->load(std::memory_order_relaxed); }

  void add(std::uint64_t parts) {
    const std::uint64_t done = done_.fetch_add(parts, std::memory_order_relaxed) + parts;
    if (!hooks_.progress || std::this_thread::get_id() != owner_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    hooks_.progress(what_, static_cast<double>(done) / total_);
  }

 private:
  const char* what_;
  double total_;
  const LogPartitionHooks& hooks_;
  std::thread::id owner_;
  std::atomic<std::uint64_t> done_{0};
  std::chrono::steady_clock::time_point next_{};
};

/// log weights of the chains that came through, in the order of the chains; log Z at beta = 0 is in them.
[[nodiscard]] std::vector<double> anneal(const RbmWeights& rbm, const LogPartitionOptions& options, ThreadPool& pool,
                                         const LogPartitionHooks& hooks);

/// log Z by summing over the states of the smaller side; nothing when stopped.
[[nodiscard]] std::optional<double> enumerate(const RbmWeights& rbm, ThreadPool& pool, const LogPartitionHooks& hooks);

}  // namespace poise::log_partition_parts
