/// Draws in batches: the device works on one while threads of the host look at the one before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <future>
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

  /// So many draws, `together` in a batch.
  void run(std::size_t draws, std::size_t together, const Work& work) {
    const auto size_of = [&](std::size_t batch) { return std::min(together, draws - batch * together); };
    const std::size_t batches = (draws + together - 1) / together;
    if (batches == 0) return;
    std::future<void> looking;
    work.start(0, size_of(0));
    for (std::size_t batch = 0; batch < batches; ++batch) {
      if (looking.valid()) looking.get();  // so the place of the next batch is free
      if (batch + 1 < batches) work.start(batch + 1, size_of(batch + 1));
      work.wait(batch);
      looking = std::async(std::launch::async, [&, batch] {
        pool_.for_each(size_of(batch), [&](std::size_t draw) { work.use(batch, draw); });
      });
    }
    looking.get();
  }

 private:
  ThreadPool pool_{std::clamp(std::thread::hardware_concurrency(), 1U, 4U)};
};

}  // namespace poise::cuda
