/// Ranks that are threads of one process: what several processes do, without them and under sanitizers.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <poise/collective.hpp>

namespace poise::testing {

/// Sleeps where std::barrier spins: there are more ranks than cores.
class Barrier {
 public:
  explicit Barrier(int size) : size_(size) {}
  void arrive_and_wait() {
    std::unique_lock lock(mutex_);
    const std::uint64_t phase = phase_;
    if (++arrived_ == size_) {
      arrived_ = 0;
      ++phase_;
      all_there_.notify_all();
    } else {
      all_there_.wait(lock, [&] { return phase_ != phase; });
    }
  }

 private:
  const int size_;
  std::mutex mutex_;
  std::condition_variable all_there_;
  int arrived_ = 0;
  std::uint64_t phase_ = 0;
};

/// Where all ranks meet.
struct ThreadHub {
  explicit ThreadHub(int size) : barrier(size), bytes(static_cast<std::size_t>(size)) {}
  Barrier barrier;
  std::vector<std::span<std::byte>> bytes;
};

class ThreadCollective final : public Collective {
 public:
  ThreadCollective(ThreadHub& hub, int rank) : hub_(hub), rank_(rank) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(hub_.bytes.size()); }

 protected:
  void exchange_heads(std::span<Head> heads) override {
    std::vector<std::size_t> ends;
    for (std::size_t r = 0; r < heads.size(); ++r) ends.push_back((r + 1) * sizeof(Head));
    exchange(std::as_writable_bytes(heads), ends, To::all);
  }

  void exchange(std::span<std::byte> bytes, std::span<const std::size_t> ends, To to) override {
    hub_.bytes[static_cast<std::size_t>(rank_)] = bytes;
    hub_.barrier.arrive_and_wait();
    for (std::size_t r = 0, first = 0; r < ends.size(); first = ends[r++]) {
      if (static_cast<int>(r) == rank_ || (to == To::root && !is_root()) || ends[r] == first) continue;
      std::memcpy(bytes.data() + first, hub_.bytes[r].data() + first, ends[r] - first);
    }
    hub_.barrier.arrive_and_wait();
  }

 private:
  ThreadHub& hub_;
  int rank_;
};

/// Has `size` ranks do the same, together; gives the errors that they ended with, or nothing.
inline std::vector<std::exception_ptr> on_ranks(int size, const std::function<void(Collective&)>& work) {
  ThreadHub hub(size);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        ThreadCollective collective(hub, rank);
        try {
          collective.together([&] { work(collective); });
        } catch (...) {
          errors[static_cast<std::size_t>(rank)] = std::current_exception();
        }
        collective.leave();
      });
    }
  }
  return errors;
}

inline std::string words_of(const std::exception_ptr& error) {
  if (!error) return "";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "something else";
  }
}

}  // namespace poise::testing
