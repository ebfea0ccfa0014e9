/// Batches of draws: how large they are, and how their sums come to the host.
#include "engines/cuda/lanes/lane_recording.hpp"

#include <algorithm>

namespace poise::cuda {

namespace {

/// Draws up to which a batch is worth while.
constexpr std::size_t kMostDraws = 64;
constexpr std::size_t kStateBytes = std::size_t{64} << 20;
/// Of what is fetched: the caches of the host have room for it.
constexpr std::size_t kFoundBytes = std::size_t{4} << 20;

}  // namespace

LaneRecording::LaneRecording(const ModelOnDevice& model, std::uint32_t rows, LaneBatch lanes)
    : model_(model),
      rows_(rows),
      lanes_(lanes),
      draws_(std::clamp<std::size_t>(
          std::min(kStateBytes / std::max<std::size_t>(1, bytes()), kFoundBytes / DrawSums::size(lanes.lanes)), 1,
          kMostDraws)) {
  make_room(1);
}

void LaneRecording::make_room(std::size_t draws) {
  found_ = Array<unsigned char>(kPlaces * draws * DrawSums::size(lanes_.lanes));
  host_ = PinnedArray<unsigned char>(found_.size());
}

DrawBatches& LaneRecording::batches() {
  if (!batches_) {
    make_room(draws_);
    batches_ = std::make_unique<DrawBatches>(kPlaces);
  }
  return *batches_;
}

std::uint8_t* LaneRecording::states() {
  if (states_.empty()) states_ = Array<std::uint8_t>(draws_ * bytes());
  return states_.data();
}

void LaneRecording::start(const std::uint8_t* states, std::size_t draws, std::size_t batch) {
  const std::size_t place = batch % kPlaces * (found_.size() / kPlaces);
  const SumsOfDraws view{.exact = model_.exact(),
                         .factors = model_.factors(),
                         .states = states,
                         .bytes = bytes(),
                         .draws = static_cast<std::uint32_t>(draws),
                         .lanes = lanes_.lanes,
                         .positions = rows_,
                         .most_levels = model_.most_levels(),
                         .reference = model_.reference(),
                         .out = {found_.data() + place, lanes_.lanes}};
  if (model_.log_sums() == CudaLogSums::in_integers) {
    launch_sums_in_integers(view);
  } else {
    launch_sums_in_order(view);
  }
  check_launch("states were summed");
  summed_[batch % kPlaces].record(nullptr);
  summed_[batch % kPlaces].hold(copying_);
  check(cudaMemcpyAsync(host_.data() + place, found_.data() + place, draws * DrawSums::size(lanes_.lanes),
                        cudaMemcpyDeviceToHost, copying_),
        "sums were copied from it");
  done_[batch % kPlaces].record(copying_);
}

CudaLaneSums LaneRecording::sums(std::size_t batch, std::size_t draw) const {
  const DrawSums all{host_.data() + batch % kPlaces * (found_.size() / kPlaces), lanes_.lanes};
  return {{all.units(draw) + lanes_.first, lanes_.count},
          {all.different(draw) + lanes_.first, lanes_.count},
          {all.at_level(draw) + lanes_.first, lanes_.count}};
}

}  // namespace poise::cuda
