/// What a trainer has on a GPU.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engines/common/rbm_updates.hpp"
#include <poise/extend/learning/optimizer.hpp>
#include "inference/train/rbm_trainer.hpp"

namespace poise {

/// All that is learned, on the host.
struct RbmLearned {
  RbmWeights& weights;
  RbmWeights& first_moment;
  RbmWeights& second_moment;
  RbmWeights& gradient;
};

class RbmTrainer::OnDevice {
 public:
  /// Throws an InputError where there is no GPU, or too little memory on it.
  OnDevice(const RbmWeights& weights, const RbmTrainerOptions& options);
  ~OnDevice();

  void begin(std::span<const Value> data, std::span<const std::uint64_t> order) const;
  /// Rows from place `first` of the order on.
  RbmMetrics step(std::size_t first, std::size_t rows, std::uint64_t update, double rate) const;

  void put(const RbmLearned& learned, std::span<const Value> chains) const;
  /// Gives the chains.
  std::vector<Value> fetch(const RbmLearned& learned) const;

 private:
  std::unique_ptr<RbmUpdates> updates_;
};

/// Whether training is faster on a GPU, and there is one.
[[nodiscard]] bool is_faster_on_device(const RbmWeights& weights, const RbmTrainerOptions& options);

}  // namespace poise
