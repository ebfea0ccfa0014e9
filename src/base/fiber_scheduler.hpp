/// Chains as fibers on one thread, each of which runs until it needs what is computed for all of them in one go.
///
/// A kernel asks its target for a number and continues when it has it. Where the target is code that is called with
/// many states at once, every chain runs on a stack of its own: it leaves its request, and the next one runs up to its
/// own; when all wait, one call answers the batch of requests. Kernels, learning and the runner are the same as
/// everywhere.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace poise {

class FiberScheduler {
 public:
  /// `serve` answers all requests that were asked since it was last called; `forget` drops them, after a failure.
  FiberScheduler(std::function<void()> serve, std::function<void()> forget);
  ~FiberScheduler();
  FiberScheduler(const FiberScheduler&) = delete;
  FiberScheduler& operator=(const FiberScheduler&) = delete;

  /// Calls work(0) .. work(count - 1), as fibers. The first exception that a call or `serve` throws ends all of them
  /// and is thrown again here. Called by a fiber, it adds fibers to those that run, and returns when these are over.
  /// Where there are very many, some begin when others are over. Throws std::runtime_error where another thread runs
  /// fibers already, or the system has no room for their stacks.
  void for_each(std::size_t count, const std::function<void(std::size_t)>& work);

  /// Returns when the requests asked so far are answered. Outside of `for_each` that is at once.
  void wait();

 private:
  struct Fibers;
  std::function<void()> serve_;
  std::function<void()> forget_;
  std::unique_ptr<Fibers> fibers_;
};

}  // namespace poise
