/// Draws in batches: the device works on one while threads of the host look at the one before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <semaphore>
#include <thread>

#include <poise/thread_pool.hpp>

namespace poise::cuda {

class DrawBatches {
 public:
  struct Work {
    /// Has the device begin with a batch of so many draws. What it finds goes to one of two places, in turns.
    std::function<void(std::size_t batch, std::size_t size)> start;
    /// Until it is found.
    std::function<void(std::size_t batch)> wait;
    /// Looks at a draw of a batch, on any thread.
    std::function<void(std::size_t batch, std::size_t draw)> use;
  };

  /// So many draws, `together` in a batch. What any of the functions throws comes out of it, when no thread works any
  /// more.
  void run(std::size_t draws, std::size_t together, const Work& work) {
    const auto size_of = [&](std::size_t batch) { return std::min(together, draws - batch * together); };
    const std::size_t batches = (draws + together - 1) / together;
    if (batches == 0) return;
    std::counting_semaphore<> found(0), looked_at(1);  // the first two places are free
    bool is_over = false;                              // before all batches were found
    std::exception_ptr failure;
    {
      const std::jthread looking([&] {
        for (std::size_t batch = 0; batch < batches; ++batch) {
          found.acquire();
          if (is_over) return;
          try {
            if (!failure) pool_.for_each(size_of(batch), [&](std::size_t draw) { work.use(batch, draw); });
          } catch (...) {
            failure = std::current_exception();
          }
          looked_at.release();
        }
      });
      try {
        work.start(0, size_of(0));
        for (std::size_t batch = 0; batch < batches; ++batch) {
          if (batch + 1 < batches) {
            looked_at.acquire();  // so the place of the next batch is free
            work.start(batch + 1, size_of(batch + 1));
          }
          work.wait(batch);
          found.release();
        }
      } catch (...) {
        is_over = true;
        found.release();
        throw;
      }
    }
    if (failure) std::rethrow_exception(failure);
  }

 private:
  ThreadPool pool_{std::clamp(std::thread::hardware_concurrency(), 1U, 4U)};
};

}  // namespace poise::cuda
