/// A pool of threads that share out the work of a round, and the clock that work is timed by.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace poise {

class ThreadPool {
 public:
  explicit ThreadPool(unsigned threads);
  ~ThreadPool();
  [[nodiscard]] unsigned threads() const { return static_cast<unsigned>(threads_.size()) + 1; }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Calls work(0) .. work(count - 1), each once, on all threads, and returns when all are done. The first exception
  /// thrown by a call is thrown again here. Rounds that are over before another thread would wake up are made on this
  /// one alone.
  void for_each(std::size_t count, const std::function<void(std::size_t)>& work);

 private:
  void start_thread();
  std::size_t take_work();

  const std::function<void(std::size_t)>* work_ = nullptr;
  std::atomic<std::size_t> count_{0};
  // Number of the round, and below it that of the next chunk of work. A thread that wakes up late finds another round,
  // or no chunk left, and so no thread has to wait for it.
  std::atomic<std::uint64_t> ticket_{~std::uint64_t{0}};
  std::atomic<std::size_t> done_{0};
  std::atomic<unsigned> round_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> ending_{false};
  std::exception_ptr failure_;
  bool alone_ = false;  // the last round was a short one
  std::vector<std::jthread> threads_;
};

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace poise
