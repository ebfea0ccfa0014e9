/// Gibbs with chains of networks and of Ising models across the lanes of a GPU, as an engine.
#include "engines/cuda/engines.hpp"

#include <limits>

#include <poise/extend/engines/tuner.hpp>
#include "engines/common/exact_tables.hpp"
#include "engines/cpu/lanes/lane_layout.hpp"
#include "engines/cpu/tile_engine.hpp"
#include "engines/cuda/lanes/lane_tile.hpp"

namespace poise {

namespace {

/// One tile has all chains.
template <class T>
class CudaLaneLayout {
 public:
  using Tile = CudaLaneTile;
  static constexpr std::size_t kMostChains = std::numeric_limits<std::size_t>::max();
  static constexpr bool kRaoBlackwellises = true;

  explicit CudaLaneLayout(const std::shared_ptr<const T>& target) : model_(std::make_shared<CudaLaneModel>()) {
    model_->model = std::make_shared<const LaneModel>(lane_source(target));
    model_->exact = exact_tables(*target, *model_->model);
    model_->log_sums = log_sums_of(*target);
  }

  [[nodiscard]] std::vector<double> rounding() const { return model_->model->rounding(); }
  void set_reference(std::span<const Value> reference) { model_->set_reference(reference); }
  [[nodiscard]] static std::vector<ChainGroup> group(std::size_t chains, std::uint64_t, unsigned) {
    return {{0, chains}};
  }
  [[nodiscard]] CudaLaneTile make_tile(ChainGroup group, std::uint64_t seed, std::uint64_t first_chain) const {
    return {model_, group, seed, first_chain};
  }
  void observe(const T& target, const CudaLaneTile& tile, const Observables& out) const {
    if (!out.log_prob.empty() || !out.statistics.empty() || !out.distance.empty()) {
      observe_sums(target, tile.sums(), out);
    }
    if (!out.levels.empty()) tile.get_all_levels(out.levels);
  }
  static std::size_t draws_at_once(std::size_t chains) { return lane_draws_at_once(chains); }
  void sweep_and_observe(const T& target, CudaLaneTile& tile, std::uint64_t sweeps,
                         std::span<const Observables> draws) const {
    const std::uint64_t before = tile.sweeps();
    tile.sweep_and_sum(sweeps, draws.size(), [&](std::size_t draw, const CudaLaneSums& sums) {
      observe_sums(target, sums, draws[draw]);
      observe_sweeps(before + (draw + 1) * sweeps, draws[draw]);
    });
  }

 private:
  std::shared_ptr<CudaLaneModel> model_;
};

template <class T>
TunableEngine make_lanes(const std::shared_ptr<const T>& target, const EngineOptions& options) {
  using Layout = CudaLaneLayout<T>;
  return {std::make_unique<TileEngine<T, Layout>>(target, Layout(target), options), nullptr};
}

}  // namespace

TunableEngine make_cuda_lanes(const Model& model, const Sampler&, const EngineOptions& options) {
  if (const auto* network = std::get_if<NetworkDescription>(&model.description))
    return make_lanes(network->target, options);
  return make_lanes(std::get<std::shared_ptr<const GraphIsing>>(model.description), options);
}

}  // namespace poise
