/// Ladders of tempering on a GPU, with replicas across lanes: sweeps, energies, swaps and exchange of components, step
/// after step, without a word from the host.
///
/// Replicas have the random words of the CPU's, and decisions are made as there (cuda/lane_block.hpp). A swap is
/// decided by an exponential in doubles, which may differ from the CPU's in the last digit: one swap in 10^16 or so.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engines/cuda/lanes/lane_tile.hpp"
#include "engines/cuda/tempering/ladder.hpp"

namespace poise {

/// From a rung to the next one: what beta and the logarithm of a zero rise by, and about what log Z does.
struct CudaRungStep {
  double beta;
  double log_zero;
  double guess;
};

class CudaLaneLadders {
 public:
  struct Options {
    std::size_t ladders = 0;
    std::size_t rungs = 0;  ///< an even number up to 64
    std::uint64_t seed = 0;
    std::uint64_t first_chain = 0;  ///< number of the first ladder
    std::uint64_t first_lane = 0;   ///< number of its first replica, an even one
    std::uint64_t lanes_apart = 0;  ///< between the first replicas of two ladders, an even number
    /// Positions that share a factor with each, and where those of each begin, for components.
    std::vector<std::uint32_t> first_neighbour;
    std::vector<std::uint32_t> neighbours;
  };

  /// A model with soft zeros. Throws an InputError where the GPU has too little memory.
  CudaLaneLadders(std::shared_ptr<const CudaLaneModel> model, Options options);
  ~CudaLaneLadders();
  CudaLaneLadders(CudaLaneLadders&&) noexcept;
  CudaLaneLadders& operator=(CudaLaneLadders&&) noexcept;

  /// Takes other rungs. States, ladders and totals start anew.
  void set_rungs(std::span<const LaneHeat> heats, std::span<const CudaRungStep> steps);

  [[nodiscard]] TileProgress progress() const { return {sweeps_, counting_ ? 1U : 0U, averaging_ ? 1U : 0U}; }
  /// Totals start anew.
  void set_progress(const TileProgress& progress);

  /// Has the device make steps of all ladders, the first of them number `step`, and does not wait for them. Counts
  /// levels of the cold replicas once `reset_counts` was called, and averages their conditionals once `reset_sums` was.
  void start(std::uint64_t step, std::uint64_t steps);
  /// Until they are made.
  void wait() const;
  void reset_counts();
  void reset_sums();
  [[nodiscard]] bool counts() const { return counting_; }
  [[nodiscard]] bool averages() const { return averaging_; }

  // All ladders, in one go.
  [[nodiscard]] std::vector<CudaLadder> ladders() const;
  void set_ladders(std::span<const CudaLadder> ladders);
  /// What each two ladders exchanged.
  [[nodiscard]] std::vector<CudaExchange> exchanges() const;
  void set_exchanges(std::span<const CudaExchange> exchanges);
  /// Keeps the rungs of all replicas as they are after the steps that were started. False where they are to be fetched
  /// before there is room for more.
  bool follow();
  /// Rungs of all replicas, ladder by ladder, each time that they were kept since this was asked last.
  [[nodiscard]] std::vector<std::uint8_t> followed();
  /// Sums over all factors of the states of all replicas, ladder by ladder: log weights without heat, and zeros.
  struct Energies {
    std::vector<double> log_weight;
    std::vector<double> zeros;
  };
  [[nodiscard]] Energies energies() const;
  /// Sums of the cold replicas of all ladders; good until the next ones are asked for.
  [[nodiscard]] CudaLaneSums sums() const;
  /// The same `draws` times, each after a call of `start_draw`, which starts its steps: calls use(draw, sums), on other
  /// threads and in any order.
  void sum_draws(std::size_t draws, const std::function<void()>& start_draw,
                 const std::function<void(std::size_t draw, const CudaLaneSums& sums)>& use);

  // One replica or ladder; not while others set them.
  void set_levels(std::size_t ladder, std::size_t replica, std::span<const Value> levels);
  [[nodiscard]] std::span<const Value> levels(std::size_t ladder, std::size_t replica) const;
  [[nodiscard]] std::span<const Value> cold_levels(std::size_t ladder) const;
  [[nodiscard]] LaneTotals totals(std::size_t ladder) const;
  void set_totals(std::size_t ladder, const LaneTotals& totals);

 private:
  class OnDevice;

  std::shared_ptr<const CudaLaneModel> model_;
  bool counting_ = false;
  bool averaging_ = false;
  std::uint64_t sweeps_ = 0;
  std::unique_ptr<OnDevice> device_;
};

}  // namespace poise
