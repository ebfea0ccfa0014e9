/// Draws in batches: the device works on some of them while the host looks at one before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <thread>

#include "base/thread_pool.hpp"

namespace poise::cuda {

class DrawBatches {
 public:
  struct Work {
    /// Has the device begin with a batch of so many draws. What it finds goes to one of the slots, in turns.
    std::function<void(std::size_t batch, std::size_t size)> start;
    /// Until it is found.
    std::function<void(std::size_t batch)> wait;
    /// Looks at a draw of a batch, on any thread.
    std::function<void(std::size_t batch, std::size_t draw)> use;
  };

  explicit DrawBatches(std::size_t slots) : slots_(slots) {}

  /// So many draws, `together` in a batch. The device is as many batches ahead as there are slots, so it need not wait
  /// for this thread, which starts them and looks at them; others wake up too late to help with less than a tenth of a
  /// millisecond's work (ThreadPool). What any of the functions throws comes out of it when the device has ended.
  void run(std::size_t draws, std::size_t together, const Work& work) {
    const auto size_of = [&](std::size_t batch) { return std::min(together, draws - batch * together); };
    const std::size_t batches = (draws + together - 1) / together;
    std::size_t batch = 0, started = 0;
    try {
      for (; batch < batches; ++batch) {
        for (; started < std::min(batches, batch + slots_); ++started) work.start(started, size_of(started));
        work.wait(batch);
        pool_.for_each(size_of(batch), [&](std::size_t draw) { work.use(batch, draw); });
      }
    } catch (...) {
      for (; batch < started; ++batch) wait_quietly(batch, work);
      throw;
    }
  }

 private:
  static void wait_quietly(std::size_t batch, const Work& work) {
    try {
      work.wait(batch);
    } catch (...) {  // what went wrong first is what is told
    }
  }

  std::size_t slots_;
  ThreadPool pool_{std::clamp(std::thread::hardware_concurrency(), 1U, 4U)};
};

}  // namespace poise::cuda
