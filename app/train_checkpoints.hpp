/// Where a training is that was killed.
#pragma once

#include <cstdint>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include "inference/train/rbm_trainer.hpp"

namespace poise::app {

/// Where a training is, besides what its trainer knows.
struct Position {
  std::uint64_t epoch = 1;
  std::vector<RbmEpoch> epochs;  // that are over
  Rng pixels;                    // random numbers as they were before those of this epoch
  double seconds = 0.0;

  template <class A>
  void archive(A& archive) {
    archive(epoch, epochs, pixels, seconds);
  }
};

}  // namespace poise::app
