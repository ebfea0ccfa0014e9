/// Draws that are looked at in batches: every one once, slots in turns, and what is thrown.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "engines/cuda/common/draw_batches.hpp"

namespace poise::cuda::draw_batches_test {

/// A device that fills slots when it is waited for.
struct Slots {
  std::vector<std::vector<std::size_t>> slot;
  std::vector<std::atomic<unsigned>> being_read;
  std::vector<std::atomic<unsigned>> looks;
  std::size_t together;
  bool was_disturbed = false;

  Slots(std::size_t draws, std::size_t the_together, std::size_t slots)
      : slot(slots), being_read(slots), looks(draws), together(the_together) {}

  DrawBatches::Work work() {
    return {.start =
                [this](std::size_t batch, std::size_t size) {
                  was_disturbed = was_disturbed || being_read[batch % slot.size()] != 0;
                  slot[batch % slot.size()].assign(size, batch);
                },
            .wait = [](std::size_t) {},
            .use =
                [this](std::size_t batch, std::size_t draw) {
                  ++being_read[batch % slot.size()];
                  if (slot[batch % slot.size()].at(draw) != batch) was_disturbed = true;
                  ++looks[batch * together + draw];
                  --being_read[batch % slot.size()];
                }};
  }
};

TEST(DrawBatches, LooksAtEveryDrawOnce) {
  for (const std::size_t count : {1, 2, 4}) {
    DrawBatches batches(count);
    for (const std::size_t draws : {0, 1, 15, 16, 17, 32, 1000}) {
      for (const std::size_t together : {1, 16}) {
        Slots slots(draws, together, count);
        batches.run(draws, together, slots.work());
        EXPECT_FALSE(slots.was_disturbed);
        for (const auto& looks : slots.looks) EXPECT_EQ(looks, 1U);
      }
    }
  }
}

TEST(DrawBatches, WhatIsThrownComesOut) {
  DrawBatches batches(4);
  Slots slots(1000, 16, 4);
  const auto thrown = [&](auto&& spoil) {
    DrawBatches::Work work = slots.work();
    spoil(work);
    EXPECT_THROW(batches.run(1000, 16, work), std::domain_error);
  };
  const auto fail_at = [](std::size_t batch) {
    if (batch == 7) throw std::domain_error("seven");
  };
  thrown([&](DrawBatches::Work& work) {
    work.start = [fail_at, start = work.start](std::size_t batch, std::size_t size) {
      fail_at(batch);
      start(batch, size);
    };
  });
  thrown([&](DrawBatches::Work& work) { work.wait = fail_at; });
  thrown([&](DrawBatches::Work& work) { work.use = [&](std::size_t batch, std::size_t) { fail_at(batch); }; });
  Slots again(100, 16, 4);
  batches.run(100, 16, again.work());
  for (const auto& looks : again.looks) EXPECT_EQ(looks, 1U);
}

}  // namespace poise::cuda::draw_batches_test
