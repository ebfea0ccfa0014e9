/// Draws of chains across lanes on the device: their states side by side, and sums of these for the host.
#pragma once

#include <cstdint>
#include <memory>

#include "engines/cuda/lanes/lane_block.hpp"
#include "engines/cuda/common/call.hpp"
#include "engines/cuda/common/draw_batches.hpp"
#include "engines/cuda/common/launch_graph.hpp"
#include "engines/cuda/lanes/lane_memory.hpp"
#include "engines/cuda/lanes/lane_sums.hpp"

namespace poise::cuda {

class LaneRecording {
 public:
  /// Of states that have so many rows, [position][lane]; `lanes` says which of them are chains.
  LaneRecording(const ModelOnDevice& model, std::uint32_t rows, LaneBatch lanes);

  /// Of a batch: as many as take little memory.
  [[nodiscard]] std::size_t draws() const { return draws_; }
  /// Bytes of a state.
  [[nodiscard]] std::size_t bytes() const { return std::size_t{rows_} * lanes_.lanes; }
  /// Room for the states of a batch, one after the other.
  [[nodiscard]] std::uint8_t* states();

  /// Has the device sum so many states, one after the other, once it has made them; a batch takes the
  /// place of the one kPlaces before.
  void start(const std::uint8_t* states, std::size_t draws, std::size_t batch);
  void wait(std::size_t batch) { done_[batch % kPlaces].wait("states were summed"); }
  /// Of a draw of a batch that was waited for.
  [[nodiscard]] CudaLaneSums sums(std::size_t batch, std::size_t draw) const;

  /// For many draws; room for their sums is made when this is asked for first.
  [[nodiscard]] DrawBatches& batches();

 private:
  void make_room(std::size_t draws);

  const ModelOnDevice& model_;
  std::uint32_t rows_;
  LaneBatch lanes_;
  std::size_t draws_;
  Array<std::uint8_t> states_;
  static constexpr std::size_t kPlaces = 2;  // of batches
  Array<unsigned char> found_;               // [place]
  PinnedArray<unsigned char> host_;
  CudaStream copying_{StreamOrder::apart};  // while the device goes on in the default stream
  Event summed_[kPlaces];
  Event done_[kPlaces];
  std::unique_ptr<DrawBatches> batches_;
};

}  // namespace poise::cuda
