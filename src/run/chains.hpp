/// An engine and the threads that advance its chains, the length of rounds, and reports of progress.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <poise/extend/engines/division.hpp>
#include <poise/extend/engines/engine.hpp>
#include <poise/run.hpp>
#include "base/fiber_scheduler.hpp"
#include "base/thread_pool.hpp"

namespace poise {

/// Reports progress at most ten times a second.
class ProgressReporter {
 public:
  explicit ProgressReporter(std::function<void(const Progress&)> show) : show_(std::move(show)) {}

  /// Whether there is a callback.
  explicit operator bool() const { return static_cast<bool>(show_); }
  /// Whether it is time for another report.
  [[nodiscard]] bool due() const { return show_ && (first_ || seconds_since(last_) >= kInterval); }

  /// A report that is not due is held, and shown after all when its phase ends.
  void tell(const Progress& progress, bool last) {
    if (!show_) return;
    if (held_ && held_->phase != progress.phase) show_(*held_);
    held_.reset();
    if (!last && !due()) {
      held_ = progress;
      return;
    }
    show_(progress);
    last_ = Clock::now();
    first_ = false;
  }

 private:
  static constexpr double kInterval = 0.1;

  std::function<void(const Progress&)> show_;
  std::optional<Progress> held_;
  Clock::time_point last_;
  bool first_ = true;
};

/// The chains of a run that this process moves on, in groups that threads take; or one by one as fibers, where one call
/// of user code serves them all. The engine outlives it.
class Chains {
 public:
  /// `may_stop`: the target is user code, which may throw RunStopped.
  Chains(Engine& engine, unsigned threads, std::shared_ptr<FiberScheduler> fibers, bool may_stop)
      : engine_(engine), pool_(fibers ? 1 : threads), fibers_(std::move(fibers)), may_stop_(may_stop) {
    const ChainGroup own = own_chains(engine);
    for (std::size_t c = own.first; c < own.first + own.count; ++c) own_.push_back(c);
    if (!fibers_ || engine.traits().together) {
      groups_ = engine.share_out(pool_.threads());
    } else {
      for (const std::size_t c : own_) groups_.push_back({c, 1});
    }
  }

  [[nodiscard]] Engine& engine() const { return engine_; }
  /// Number of chains of the whole run.
  [[nodiscard]] std::size_t count() const { return engine_.traits().chains; }

  void advance(std::uint64_t steps) {
    for_each_group([&](ChainGroup group) { engine_.advance(group, steps); });
  }
  void for_each_group(const std::function<void(ChainGroup)>& work) {
    // Chains that are moved on by one call take no turns, and user code needs more than the stack of a fiber.
    for_each(
        groups_.size(), [&](std::size_t g) { work(groups_[g]); }, engine_.traits().together ? nullptr : fibers_.get());
  }
  void for_each_chain(const std::function<void(std::size_t)>& work) {
    for_each(
        own_.size(), [&](std::size_t k) { work(own_[k]); }, fibers_.get());
  }

 private:
  /// A stop by the target on one rank is one on all.
  void for_each(std::size_t items, const std::function<void(std::size_t)>& work, FiberScheduler* fibers) {
    if (engine_.division() == nullptr || !may_stop_) return for_each_here(items, work, fibers);
    bool stopped = false;
    try {
      for_each_here(items, work, fibers);
    } catch (const RunStopped&) {
      stopped = true;
    }
    if (engine_.division()->collective().any(stopped)) throw RunStopped{};
  }

  void for_each_here(std::size_t items, const std::function<void(std::size_t)>& work, FiberScheduler* fibers) {
    if (items == 0) return;
    if (fibers != nullptr) {
      fibers->for_each(items, work);
    } else {
      pool_.for_each(items, work);
    }
  }

  Engine& engine_;
  ThreadPool pool_;
  std::shared_ptr<FiberScheduler> fibers_;
  bool may_stop_;
  std::vector<std::size_t> own_;
  std::vector<ChainGroup> groups_;
};

/// Finds rounds that are long enough to cost nothing beside their work and short enough for lively progress, a prompt
/// stop and a limit that is kept. How a run is cut into rounds changes none of its draws.
class RoundLength {
 public:
  static constexpr double kSeconds = 0.1;

  explicit RoundLength(std::uint64_t chunk) : first_(std::max<std::uint64_t>(1, chunk / 64)), steps_(first_) {}

  /// From here on steps may cost more: rounds are as short again as the first one, or shorter where they were.
  void begin_short() { steps_ = std::min(steps_, first_); }

  /// Steps of each chain in the next round, at most as many as fit the time left.
  [[nodiscard]] std::uint64_t steps(double seconds_left) const {
    if (seconds_left <= 0.0) return steps_;
    const double fitting = seconds_left / std::max(seconds_per_step_, 1e-12);
    return fitting >= static_cast<double>(steps_) ? steps_
                                                  : std::max<std::uint64_t>(1, static_cast<std::uint64_t>(fitting));
  }

  void took(std::uint64_t steps, double seconds) {
    if (steps == 0) return;
    seconds_per_step_ = std::max(seconds, 1e-6) / static_cast<double>(steps);
    const double wanted = kSeconds / seconds_per_step_;
    const double most = 2.0 * static_cast<double>(steps_);
    steps_ = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::min({wanted, most, 1e15})));
  }

 private:
  std::uint64_t first_;
  std::uint64_t steps_;
  double seconds_per_step_ = 0.0;  // of all chains
};

}  // namespace poise
