/// Ladders of tempering on a GPU, with replicas across lanes: sweeps, energies, swaps and exchange of components, step
/// after step, without a word from the host.
///
/// Replicas have the random words of the CPU's, and decisions are made as there (cuda/lane_block.hpp). A swap is
/// decided by an exponential in doubles, which may differ from the CPU's in the last digit: one swap in 10^16 or so.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engines/cuda/lanes/lane_tile.hpp"
#include "engines/cuda/tempering/ladder_kernels.hpp"
#include "engines/cuda/tempering/ladder_memory.hpp"

namespace poise {

/// From a rung to the next one: what beta and the logarithm of a zero rise by, and about what log Z does.
struct CudaRungStep {
  double beta;
  double log_zero;
  double guess;
};

class CudaLaneLadders : public CudaLaneStates {
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
  CudaLaneLadders(const std::shared_ptr<const CudaLaneModel>& model, Options options)
      : CudaLaneStates(*model, static_cast<std::uint32_t>((options.ladders + 1) / 2)),
        options_(std::move(options)),
        components_(options_.first_neighbour, options_.neighbours, options_.ladders / 2),
        cold_here_(options_.ladders, model_->variables()) {}

  /// Takes other rungs: everything but the model is made anew. States, ladders and totals start anew.
  void set_rungs(std::span<const LaneHeat> heats, std::span<const CudaRungStep> steps) {
    options_.rungs = heats.size();
    std::vector<cuda::RungHeat> floats;
    for (const LaneHeat& heat : heats) {
      floats.push_back({static_cast<float>(heat.beta), std::max(static_cast<float>(heat.log_zero), cuda::kHardZero)});
    }
    std::vector<cuda::RungStep> between;
    std::vector<double> guesses;
    for (const CudaRungStep& step : steps) {
      between.push_back({step.beta, step.log_zero});
      guesses.push_back(step.guess);
    }
    rung_steps_ = cuda::Array<cuda::RungStep>(between);
    energies_ = cuda::Array<cuda::ReplicaEnergy>(lanes().lanes);
    rung_heats_ = cuda::Array<cuda::RungHeat>(floats);
    levels_ = std::make_unique<cuda::LevelsOnDevice>(model_->positions(), model_->variables(), lanes());
    const std::size_t of_ladder = options_.rungs / 2;
    set_keys(options_.seed, lanes().lanes / 2, [&](std::size_t pair) {
      return (options_.first_lane + pair / of_ladder * options_.lanes_apart) / 2 + pair % of_ladder;
    });
    ladders_ = std::make_unique<cuda::LaddersOnDevice>(options_.ladders, guesses);
    components_.set_rungs(options_.rungs);
    cold_here_.forget();
  }

  /// Has the device make steps of all ladders, the first of them number `step`, and does not wait for them. Counts
  /// levels of the cold replicas once `reset_counts` was called, and averages their conditionals once `reset_sums` was.
  void start(std::uint64_t step, std::uint64_t steps) {
    levels_->to_device();
    levels_->changed();
    cold_here_.forget();
    cuda::LaneTileView view = view_of(*levels_, lanes());
    view.heat = {ladders_->rung_of(), rung_heats_.data(), static_cast<std::uint32_t>(options_.rungs),
                 stride_of_totals()};
    const cuda::LanePlan plan = cuda::plan_lanes(shape_of(view), device_);
    for (; steps > 0; --steps, ++step) {
      launch_sweeps<true>(view, plan, 1);
      sum_energies();
      cuda::launch_swaps(ladder_view(), {energies_.data(), rung_steps_.data()}, step);
      if (counting_) {
        cuda::launch_count_cold(cold(), view.image, model_->image().colours.back(),
                                reinterpret_cast<std::uint8_t*>(totals_.counts()), stride_of_totals());
      }
      exchange(step + 1);
      cuda::check_launch("steps of ladders were started");
      note_sweeps(1);
    }
  }
  /// Until they are made.
  void wait() const { cuda::check(cudaDeviceSynchronize(), "steps of ladders were made"); }

  // All ladders, in one go.
  [[nodiscard]] std::vector<CudaLadder> ladders() const { return ladders_->get(); }
  void set_ladders(std::span<const CudaLadder> ladders) {
    ladders_->set(ladders);
    cold_here_.forget();
  }
  /// What each two ladders exchanged.
  [[nodiscard]] std::vector<CudaExchange> exchanges() const { return components_.get(); }
  void set_exchanges(std::span<const CudaExchange> exchanges) { components_.set(exchanges); }
  /// Keeps the rungs of all replicas as they are after the steps that were started. False where they are to be fetched
  /// before there is room for more.
  bool follow() { return ladders_->follow(); }
  /// Rungs of all replicas, ladder by ladder, each time that they were kept since this was asked last.
  [[nodiscard]] std::vector<std::uint8_t> followed() { return ladders_->followed(); }
  /// Sums over all factors of the states of all replicas, ladder by ladder: log weights without heat, and zeros.
  struct Energies {
    std::vector<double> log_weight;
    std::vector<double> zeros;
  };
  [[nodiscard]] Energies energies() const {
    levels_->to_device();
    sum_energies();
    cuda::check_launch("states were summed");
    Energies out;
    for (const cuda::ReplicaEnergy& energy : energies_.download()) {
      out.log_weight.push_back(energy.log_weight);
      out.zeros.push_back(energy.zeros);
    }
    return out;
  }
  /// Sums of the cold replicas of all ladders; good until the next ones are asked for.
  [[nodiscard]] CudaLaneSums sums() const {
    levels_->to_device();
    keep_cold(0);
    return recording().sums_of(recording().states());
  }
  /// The same `draws` times, each after a call of `start_draw`, which starts its steps.
  void sum_draws(std::size_t draws, const std::function<void()>& start_draw, const UseLaneSums& use) {
    const auto start = [&](std::size_t batch, std::size_t size) {
      for (std::size_t draw = 0; draw < size; ++draw) {
        start_draw();
        keep_cold(draw);
      }
      recording().start(recording().states(), size, batch);
    };
    recording().run(draws, start, use);
  }

  // One replica or ladder; not while others set them.
  void set_levels(std::size_t ladder, std::size_t replica, std::span<const Value> levels) {
    levels_->set(ladder * options_.rungs + replica, levels);
    cold_here_.forget();
  }
  [[nodiscard]] std::span<const Value> levels(std::size_t ladder, std::size_t replica) const {
    return levels_->get(ladder * options_.rungs + replica);
  }
  [[nodiscard]] std::span<const Value> cold_levels(std::size_t ladder) const {
    return cold_here_.row(ladder, [&](std::span<Value> all) {
      levels_->to_device();
      const cuda::Array<std::uint8_t> out(all.size());
      cuda::launch_gather_cold(cold(), model_->positions(), model_->variables(), out.data());
      cuda::check_launch("levels were gathered");
      out.download(all);
    });
  }
  [[nodiscard]] LaneTotals totals(std::size_t ladder) const { return totals_of(ladder, kept()); }
  void set_totals(std::size_t ladder, const LaneTotals& totals) { set_totals_of(ladder, totals); }

 private:
  [[nodiscard]] cuda::LaneBatch lanes() const {
    const auto count = static_cast<std::uint32_t>(options_.ladders * options_.rungs);
    return {0, count, count};
  }
  [[nodiscard]] std::uint32_t stride_of_totals() const {
    return static_cast<std::uint32_t>((options_.ladders + 1) / 2 * 2);
  }

  void sum_energies() const {
    const cuda::FactorsView factors{model_->exact(), model_->factors(), levels_->bytes(), lanes().lanes};
    if (model_->log_sums() == CudaLogSums::in_integers) {
      cuda::launch_exact_energies(factors, energies_.data());
    } else {
      cuda::launch_energies(factors, energies_.data());
    }
  }

  [[nodiscard]] cuda::ColdView cold() const {
    return {levels_->bytes(), lanes().lanes, ladders_->replica_at(), static_cast<std::uint32_t>(options_.ladders),
            static_cast<std::uint32_t>(options_.rungs)};
  }
  /// Ladders with the random streams of their swaps, by the number of the first ladder.
  [[nodiscard]] cuda::LadderView ladder_view() const {
    return ladders_->view(options_.seed, static_cast<std::uint64_t>(Stream::swaps) + options_.first_chain);
  }
  void exchange(std::uint64_t step) const {
    const auto rung = static_cast<std::uint32_t>(step % options_.rungs);
    if (!components_.is_on(rung)) return;
    const std::uint64_t stream = static_cast<std::uint64_t>(Stream::components) + options_.first_chain;
    cuda::launch_exchange(components_.view({levels_->bytes(), lanes().lanes}, options_.seed, stream), ladder_view(),
                          rung);
  }

  /// Records the cold replicas, whose lanes are the ladders.
  cuda::LaneRecording& recording() const {
    const auto count = static_cast<std::uint32_t>(options_.ladders);
    if (!recorded_) recorded_ = std::make_unique<cuda::LaneRecording>(*model_, cuda::LaneBatch{0, count, count});
    return *recorded_;
  }
  /// Copies their states to where those of a draw are summed.
  void keep_cold(std::size_t draw) const {
    cuda::launch_keep_cold(cold(), model_->variables(), recording().states() + draw * recording().bytes());
    cuda::check_launch("states were recorded");
  }

  Options options_;
  cuda::ComponentsOnDevice components_;
  cuda::Array<cuda::RungHeat> rung_heats_;
  cuda::Array<cuda::RungStep> rung_steps_;
  cuda::Array<cuda::ReplicaEnergy> energies_;
  std::unique_ptr<cuda::LevelsOnDevice> levels_;
  std::unique_ptr<cuda::LaddersOnDevice> ladders_;
  mutable cuda::HostRows<Value> cold_here_;  // [ladder][variable]
};

}  // namespace poise
