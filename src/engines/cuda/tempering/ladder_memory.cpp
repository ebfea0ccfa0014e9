/// Copies of ladders to and from the device.
#include "engines/cuda/tempering/ladder_memory.hpp"

#include <algorithm>
#include <utility>

namespace poise::cuda {

namespace {

template <class T>
std::vector<T> downloaded(const Array<T>& array) {
  std::vector<T> all(array.size());
  array.download(all);
  return all;
}

/// Numbers of one of them, of which there are `width` each.
template <class T>
std::vector<T> part_of(const std::vector<T>& all, std::size_t number, std::size_t width, std::size_t count) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(number * width);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

/// One after the other, each `width` long.
template <class T>
void append(std::vector<T>& all, const std::vector<T>& some, std::size_t width) {
  all.insert(all.end(), some.begin(), some.end());
  all.insert(all.end(), width - some.size(), T{});
}

}  // namespace

LaddersOnDevice::LaddersOnDevice(std::size_t ladders, const std::vector<double>& guesses)
    : ladders_(ladders),
      rungs_(guesses.size() + 1),
      guesses_(guesses),
      replica_at_(ladders * rungs_),
      rung_of_(ladders * rungs_),
      came_from_cold_(ladders * rungs_),
      accepted_(ladders * rungs_),
      tried_(ladders * rungs_),
      below_(ladders * rungs_),
      above_(ladders * rungs_),
      bridged_(ladders),
      round_trips_(ladders),
      taken_(ladders) {
  CudaLadder one;
  for (std::size_t k = 0; k < rungs_; ++k) one.replica_at.push_back(static_cast<std::uint8_t>(k));
  one.came_from_cold.resize(rungs_);
  set(std::vector<CudaLadder>(ladders, one));
}

LadderView LaddersOnDevice::view(std::uint64_t seed, std::uint64_t first_stream) const {
  return {.ladders = static_cast<std::uint32_t>(ladders_),
          .rungs = static_cast<std::uint32_t>(rungs_),
          .replica_at = replica_at_.data(),
          .rung_of = rung_of_.data(),
          .came_from_cold = came_from_cold_.data(),
          .accepted = accepted_.data(),
          .tried = tried_.data(),
          .below = below_.data(),
          .above = above_.data(),
          .bridged = bridged_.data(),
          .round_trips = round_trips_.data(),
          .taken = taken_.data(),
          .guesses = guesses_.data(),
          .seed = seed,
          .first_stream = first_stream};
}

std::vector<CudaLadder> LaddersOnDevice::get() const {
  const auto replica_at = downloaded(replica_at_), came_from_cold = downloaded(came_from_cold_);
  const auto accepted = downloaded(accepted_), below = downloaded(below_), above = downloaded(above_);
  const auto tried = downloaded(tried_), bridged = downloaded(bridged_);
  const auto round_trips = downloaded(round_trips_), taken = downloaded(taken_);
  std::vector<CudaLadder> out(ladders_);
  for (std::size_t c = 0; c < ladders_; ++c) {
    out[c] = {.replica_at = part_of(replica_at, c, rungs_, rungs_),
              .came_from_cold = part_of(came_from_cold, c, rungs_, rungs_),
              .accepted = part_of(accepted, c, rungs_, rungs_ - 1),
              .tried = part_of(tried, c, rungs_, rungs_ - 1),
              .below = part_of(below, c, rungs_, rungs_ - 1),
              .above = part_of(above, c, rungs_, rungs_ - 1),
              .bridged = bridged[c],
              .round_trips = round_trips[c],
              .taken = taken[c]};
  }
  return out;
}

void LaddersOnDevice::set(std::span<const CudaLadder> ladders) {
  std::vector<std::uint8_t> replica_at, rung_of(ladders_ * rungs_), came_from_cold;
  std::vector<double> accepted, below, above;
  std::vector<std::uint64_t> tried, bridged, round_trips, taken;
  for (std::size_t c = 0; c < ladders_; ++c) {
    const CudaLadder& ladder = ladders[c];
    for (std::size_t k = 0; k < rungs_; ++k) {
      rung_of[c * rungs_ + ladder.replica_at[k]] = static_cast<std::uint8_t>(k);
    }
    append(replica_at, ladder.replica_at, rungs_);
    append(came_from_cold, ladder.came_from_cold, rungs_);
    append(accepted, ladder.accepted, rungs_);
    append(tried, ladder.tried, rungs_);
    append(below, ladder.below, rungs_);
    append(above, ladder.above, rungs_);
    bridged.push_back(ladder.bridged);
    round_trips.push_back(ladder.round_trips);
    taken.push_back(ladder.taken);
  }
  replica_at_.upload(replica_at);
  rung_of_.upload(rung_of);
  came_from_cold_.upload(came_from_cold);
  accepted_.upload(accepted);
  tried_.upload(tried);
  below_.upload(below);
  above_.upload(above);
  bridged_.upload(bridged);
  round_trips_.upload(round_trips);
  taken_.upload(taken);
}

bool LaddersOnDevice::follow() {
  constexpr std::size_t kMostPoints = 64, kBytes = std::size_t{16} << 20;
  if (followed_.empty()) {
    followed_ =
        Array<std::uint8_t>(std::clamp<std::size_t>(kBytes / rung_of_.size(), 1, kMostPoints) * rung_of_.size());
  }
  check(cudaMemcpyAsync(followed_.data() + points_ * rung_of_.size(), rung_of_.data(), rung_of_.size(),
                        cudaMemcpyDeviceToDevice, nullptr),
        "rungs of replicas were kept");
  return (++points_ + 1) * rung_of_.size() <= followed_.size();
}

std::vector<std::uint8_t> LaddersOnDevice::followed() {
  std::vector<std::uint8_t> points(std::exchange(points_, 0) * rung_of_.size());
  followed_.download(points);
  return points;
}

std::vector<std::uint8_t> LaddersOnDevice::rungs_of_replicas() const { return downloaded(rung_of_); }

ComponentsOnDevice::ComponentsOnDevice(const std::vector<std::uint32_t>& first_neighbour,
                                       const std::vector<std::uint32_t>& neighbours, std::size_t twos)
    : twos_(twos),
      positions_(static_cast<std::uint32_t>(first_neighbour.size() - 1)),
      start_(first_neighbour),
      neighbours_(neighbours),
      labels_(twos * positions_),
      chosen_(twos * positions_),
      taken_(twos) {}

void ComponentsOnDevice::set_rungs(std::size_t rungs) {
  rungs_ = rungs;
  components_ = Array<std::uint64_t>(twos_ * rungs);
  tried_ = Array<std::uint64_t>(twos_ * rungs);
  is_off_ = Array<std::uint8_t>(twos_ * rungs);
  CudaExchange one;
  one.is_off.resize(rungs);
  set(std::vector<CudaExchange>(twos_, one));
}

ComponentsView ComponentsOnDevice::view(Lanes lanes, std::uint64_t seed, std::uint64_t first_stream) const {
  return {.start = start_.data(),
          .neighbours = neighbours_.data(),
          .positions = positions_,
          .levels = lanes.levels,
          .lanes = lanes.lanes,
          .labels = labels_.data(),
          .chosen = chosen_.data(),
          .components = components_.data(),
          .tried = tried_.data(),
          .is_off = is_off_.data(),
          .taken = taken_.data(),
          .seed = seed,
          .first_stream = first_stream};
}

std::vector<CudaExchange> ComponentsOnDevice::get() const {
  const auto components = downloaded(components_), tried = downloaded(tried_), taken = downloaded(taken_);
  const auto is_off = downloaded(is_off_);
  std::vector<CudaExchange> out(twos_);
  for (std::size_t k = 0; k < twos_; ++k) {
    out[k] = {.components = part_of(components, k, rungs_, rungs_),
              .tried = part_of(tried, k, rungs_, rungs_),
              .is_off = part_of(is_off, k, rungs_, rungs_),
              .taken = taken[k]};
  }
  return out;
}

void ComponentsOnDevice::set(std::span<const CudaExchange> exchanges) {
  std::vector<std::uint64_t> components, tried, taken;
  std::vector<std::uint8_t> is_off;
  is_on_.assign(rungs_, 0);
  for (const CudaExchange& exchange : exchanges) {
    append(components, exchange.components, rungs_);
    append(tried, exchange.tried, rungs_);
    append(is_off, exchange.is_off, rungs_);
    taken.push_back(exchange.taken);
    for (std::size_t k = 0; k < rungs_; ++k) {
      if (exchange.is_off[k] == 0) is_on_[k] = 1;
    }
  }
  components_.upload(components);
  tried_.upload(tried);
  is_off_.upload(is_off);
  taken_.upload(taken);
}

}  // namespace poise::cuda
