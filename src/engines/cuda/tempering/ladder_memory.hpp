/// What ladders have in the memory of the device, beside the replicas.
#pragma once

#include <span>
#include <vector>

#include "engines/cuda/common/call.hpp"
#include "engines/cuda/tempering/ladder_kernels.hpp"
#include "engines/cuda/tempering/lane_ladders.hpp"

namespace poise::cuda {

/// Where replicas are, and what swaps tell.
class LaddersOnDevice {
 public:
  /// All replicas are at the rungs of their numbers.
  LaddersOnDevice(std::size_t ladders, const std::vector<double>& guesses);
  [[nodiscard]] LadderView view(std::uint64_t seed, std::uint64_t first_stream) const;
  [[nodiscard]] const std::uint8_t* replica_at() const { return replica_at_.data(); }
  [[nodiscard]] const std::uint8_t* rung_of() const { return rung_of_.data(); }

  [[nodiscard]] std::vector<CudaLadder> get() const;
  void set(std::span<const CudaLadder> ladders);
  /// [ladder][replica].
  [[nodiscard]] std::vector<std::uint8_t> rungs_of_replicas() const;

  /// Keeps the rungs of all replicas on the device, after what it has been asked to do. False where there is no room
  /// for more of them before they are fetched.
  bool follow();
  /// Those that were kept, [point][ladder][replica], since this was asked last.
  [[nodiscard]] std::vector<std::uint8_t> followed();

 private:
  std::size_t ladders_;
  std::size_t rungs_;
  Array<double> guesses_;
  Array<std::uint8_t> replica_at_;
  Array<std::uint8_t> rung_of_;
  Array<std::uint8_t> came_from_cold_;
  Array<std::uint8_t> followed_;
  std::size_t points_ = 0;  // that were kept
  Array<double> accepted_;
  Array<std::uint64_t> tried_;
  Array<double> below_;
  Array<double> above_;
  Array<std::uint64_t> bridged_;
  Array<std::uint64_t> round_trips_;
  Array<std::uint64_t> taken_;
};

/// What each two ladders exchange.
class ComponentsOnDevice {
 public:
  /// `first_neighbour` has one more than there are positions.
  ComponentsOnDevice(const std::vector<std::uint32_t>& first_neighbour, const std::vector<std::uint32_t>& neighbours,
                     std::size_t twos);
  void set_rungs(std::size_t rungs);
  /// Whether any two ladders exchange components at a rung.
  [[nodiscard]] bool is_on(std::uint32_t rung) const { return is_on_[rung] != 0; }

  struct Lanes {
    std::uint8_t* levels;  ///< [position][lane]
    std::uint32_t lanes;
  };
  [[nodiscard]] ComponentsView view(Lanes lanes, std::uint64_t seed, std::uint64_t first_stream) const;
  [[nodiscard]] std::vector<CudaExchange> get() const;
  void set(std::span<const CudaExchange> exchanges);

 private:
  std::size_t twos_;
  std::size_t rungs_ = 0;
  std::uint32_t positions_;
  Array<std::uint32_t> start_;
  Array<std::uint32_t> neighbours_;
  Array<std::uint32_t> labels_;
  Array<std::uint8_t> chosen_;
  Array<std::uint64_t> components_;
  Array<std::uint64_t> tried_;
  Array<std::uint8_t> is_off_;
  Array<std::uint64_t> taken_;
  std::vector<std::uint8_t> is_on_;  // of each rung
};

}  // namespace poise::cuda
