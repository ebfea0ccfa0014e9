/// Rounds over a small pool of threads; the calling thread works too.
#include <poise/run/workers.hpp>

#include <algorithm>
#include <chrono>
#include <system_error>

namespace poise {

namespace {

constexpr std::chrono::microseconds kShort{100};

}  // namespace

std::vector<ChainGroup> group_chains(std::size_t chains, unsigned threads, std::size_t most) {
  const std::size_t rounds = std::max<std::size_t>(1, (chains + most * threads - 1) / (most * threads));
  const std::size_t number = std::min(chains, rounds * threads);
  std::vector<ChainGroup> groups;
  for (std::size_t g = 0; g < number; ++g) {
    const std::size_t first = chains * g / number;
    groups.push_back({first, chains * (g + 1) / number - first});
  }
  return groups;
}

std::vector<ChainGroup> Workers::groups(std::size_t chains, std::size_t most) const {
  if (!lock_step_) return group_chains(chains, threads(), most);
  std::vector<ChainGroup> alone;
  for (std::size_t c = 0; c < chains; ++c) alone.push_back({c, 1});
  return alone;
}

Workers::Workers(unsigned threads) {
  for (unsigned t = 1; t < threads; ++t) {
    try {
      start_thread();
    } catch (const std::system_error&) {
      return;  // the system has no more threads to give: fewer do the same work
    }
  }
}

void Workers::start_thread() {
  threads_.emplace_back([this] {
    unsigned seen = 0;
    while (true) {
      round_.wait(seen);
      seen = round_.load();
      if (ending_) return;
      take_work();
      if (busy_.fetch_sub(1) == 1) busy_.notify_one();
    }
  });
}

Workers::~Workers() {
  ending_ = true;
  ++round_;
  round_.notify_all();
}

void Workers::take_work() {
  while (!failed_) {
    const std::size_t index = next_.fetch_add(1);
    if (index >= count_) return;
    try {
      (*work_)(index);
    } catch (...) {
      if (!failed_.exchange(true)) failure_ = std::current_exception();
    }
  }
}

void Workers::for_each(std::size_t count, const std::function<void(std::size_t)>& work) {
  if (lock_step_) {
    lock_step_->for_each(count, work);
    return;
  }
  using Clock = std::chrono::steady_clock;
  const auto started = Clock::now();
  work_ = &work;
  count_ = count;
  next_ = 0;
  if (alone_ || threads_.empty()) {
    take_work();
  } else {
    busy_ = static_cast<unsigned>(threads_.size());
    ++round_;
    round_.notify_all();
    take_work();
    for (unsigned busy = busy_.load(); busy != 0; busy = busy_.load()) busy_.wait(busy);
  }
  // A thread wakes up in some 50 microseconds, and in many times that on a busy machine.
  alone_ = Clock::now() - started < (alone_ ? kShort * 2 : kShort);
  if (failed_) {
    failed_ = false;
    std::rethrow_exception(failure_);
  }
}

}  // namespace poise
