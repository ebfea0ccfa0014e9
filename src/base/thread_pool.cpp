/// Rounds over a small pool of threads; the calling thread works too.
#include "base/thread_pool.hpp"

#include <chrono>
#include <system_error>

namespace poise {

namespace {

constexpr std::chrono::microseconds kShort{100};
constexpr std::uint64_t kClosed = 0xffffffff;

}  // namespace

ThreadPool::ThreadPool(unsigned threads) {
  for (unsigned t = 1; t < threads; ++t) {
    try {
      start_thread();
    } catch (const std::system_error&) {
      return;  // the system has no more threads to give: fewer do the same work
    }
  }
}

void ThreadPool::start_thread() {
  threads_.emplace_back([this] {
    unsigned seen = 0;
    while (true) {
      round_.wait(seen);
      seen = round_.load();
      if (ending_) return;
      take_work();
    }
  });
}

ThreadPool::~ThreadPool() {
  ending_ = true;
  ++round_;
  round_.notify_all();
}

std::size_t ThreadPool::take_work() {
  for (std::size_t taken = 0;; ++taken) {
    std::uint64_t ticket = ticket_.load();
    do {
      if (static_cast<std::uint32_t>(ticket) >= count_.load()) return taken;
    } while (!ticket_.compare_exchange_weak(ticket, ticket + 1));
    // The round cannot end before this chunk is done, so what belongs to the round stays as it is.
    if (!failed_) {
      try {
        (*work_)(static_cast<std::uint32_t>(ticket));
      } catch (...) {
        if (!failed_.exchange(true)) failure_ = std::current_exception();
      }
    }
    if (done_.fetch_add(1) + 1 == count_.load()) done_.notify_one();
  }
}

void ThreadPool::for_each(std::size_t count, const std::function<void(std::size_t)>& work) {
  const auto started = Clock::now();
  const std::uint64_t round = (ticket_.load() >> 32) + 1;
  ticket_ = round << 32 | kClosed;  // late threads find nothing while the round is being laid out
  work_ = &work;
  count_ = count;
  done_ = 0;
  ticket_ = round << 32;
  if (!alone_ && !threads_.empty()) {
    ++round_;
    round_.notify_all();
  }
  const std::size_t taken = take_work();
  const auto worked = Clock::now() - started;
  for (std::size_t done = done_.load(); done != count; done = done_.load()) done_.wait(done);
  // A thread wakes up in some 50 microseconds, and in many times that on a busy machine.
  alone_ = taken == count ? worked < 2 * kShort : worked < kShort;
  if (failed_) {
    failed_ = false;
    std::rethrow_exception(failure_);
  }
}

}  // namespace poise
