/// Draws that are looked at in batches: every one once, places in turns, and what is thrown.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "engines/cuda/common/draw_batches.hpp"

namespace poise::cuda {
namespace {

/// A device that fills places when it is waited for.
struct Places {
  std::vector<std::vector<std::size_t>> place;
  std::vector<std::atomic<unsigned>> being_read;
  std::vector<std::atomic<unsigned>> looks;
  std::size_t together;
  bool was_disturbed = false;

  Places(std::size_t draws, std::size_t the_together, std::size_t places)
      : place(places), being_read(places), looks(draws), together(the_together) {}

  DrawBatches::Work work() {
    return {.start =
                [this](std::size_t batch, std::size_t size) {
                  was_disturbed = was_disturbed || being_read[batch % place.size()] != 0;
                  place[batch % place.size()].assign(size, batch);
                },
            .wait = [](std::size_t) {},
            .use =
                [this](std::size_t batch, std::size_t draw) {
                  ++being_read[batch % place.size()];
                  if (place[batch % place.size()].at(draw) != batch) was_disturbed = true;
                  ++looks[batch * together + draw];
                  --being_read[batch % place.size()];
                }};
  }
};

TEST(DrawBatches, LooksAtEveryDrawOnce) {
  for (const std::size_t count : {1, 2, 4}) {
    DrawBatches batches(count);
    for (const std::size_t draws : {0, 1, 15, 16, 17, 32, 1000}) {
      for (const std::size_t together : {1, 16}) {
        Places places(draws, together, count);
        batches.run(draws, together, places.work());
        EXPECT_FALSE(places.was_disturbed);
        for (const auto& looks : places.looks) EXPECT_EQ(looks, 1U);
      }
    }
  }
}

TEST(DrawBatches, WhatIsThrownComesOut) {
  DrawBatches batches(4);
  Places places(1000, 16, 4);
  const auto thrown = [&](auto&& spoil) {
    DrawBatches::Work work = places.work();
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
  Places again(100, 16, 4);
  batches.run(100, 16, again.work());
  for (const auto& looks : again.looks) EXPECT_EQ(looks, 1U);
}

}  // namespace
}  // namespace poise::cuda
