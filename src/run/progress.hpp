/// What a run tells of itself while it is under way, a few times a second.
#pragma once

#include <functional>

#include <poise/run.hpp>
#include "run/chains.hpp"

namespace poise {

class ProgressReporter {
 public:
  explicit ProgressReporter(std::function<void(const Progress&)> show) : show_(std::move(show)) {}

  /// Whether anybody listens.
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

}  // namespace poise
