/// Networks and graphs laid out for chains across the lanes of a GPU.
#include "cuda_lanes.hpp"

#ifdef POISE_CUDA

#include <limits>
#include <utility>

#include <poise/cuda/lane_block.hpp>
#include <poise/run/block_engine.hpp>
#include <poise/run/exact_tables.hpp>
#include <poise/run/lane_layout.hpp>

namespace poise {

namespace {

/// log p and statistics from sums that were made on the device.
void observe_sums(const MarkovNetwork& target, const CudaLaneBlock& block, const CudaLaneBlock::Tally& tally,
                  const Observables& out) {
  if (!out.log_prob.empty()) {
    const std::vector<double> sums = block.log_sums();
    for (std::size_t k = 0; k < sums.size(); ++k) out.log_prob[k] = target.log_prob_of(sums[k]);
  }
  if (out.statistics.empty()) return;
  for (std::size_t k = 0; k < tally.most.size(); ++k) out.statistics[k] = target.order(tally.most[k]);
}

void observe_sums(const GraphIsing& target, const CudaLaneBlock& block, const CudaLaneBlock::Tally& tally,
                  const Observables& out) {
  GraphIsing::State summed;
  if (!out.log_prob.empty()) {
    const std::vector<std::int64_t> sums = block.exact_sums();
    for (std::size_t k = 0; k < sums.size(); ++k) {
      summed.log_prob = sums[k];
      out.log_prob[k] = target.log_prob(summed);
    }
  }
  if (out.statistics.empty()) return;
  for (std::size_t k = 0; k < tally.up.size(); ++k) {
    summed.magnetization = 2 * std::int64_t{tally.up[k]} - static_cast<std::int64_t>(target.num_variables());
    target.statistics(summed, out.statistics.subspan(k, 1));
  }
}

/// One block has all chains.
template <class T>
class CudaLaneLayout {
 public:
  using Block = CudaLaneBlock;
  static constexpr std::size_t kMostChains = std::numeric_limits<std::size_t>::max();
  static constexpr bool kRaoBlackwellises = true;

  explicit CudaLaneLayout(const std::shared_ptr<const T>& target) : model_(std::make_shared<CudaLaneModel>()) {
    model_->model = std::make_shared<const LaneModel>(lane_source(target));
    model_->exact = exact_tables(*target, *model_->model);
  }

  void set_reference(std::span<const Value> reference) {
    model_->reference.resize(reference.size());
    for (Index i = 0; i < reference.size(); ++i) model_->reference[model_->model->position(i)] = reference[i];
  }
  [[nodiscard]] static std::vector<ChainGroup> group(std::size_t chains, std::uint64_t, unsigned) {
    return {{0, chains}};
  }
  [[nodiscard]] CudaLaneBlock make_block(ChainGroup group, std::uint64_t seed, std::uint64_t first_chain) const {
    return {model_, group, seed, first_chain};
  }
  void observe(const T& target, const CudaLaneBlock& block, const Observables& out) const {
    CudaLaneBlock::Tally tally;
    if (!out.statistics.empty() || !out.distance.empty()) tally = block.tally();
    observe_sums(target, block, tally, out);
    if (!out.distance.empty()) std::copy(tally.different.begin(), tally.different.end(), out.distance.begin());
    if (!out.levels.empty()) block.get_all_levels(out.levels);
  }

 private:
  std::shared_ptr<CudaLaneModel> model_;
};

template <class T>
TunableEngine make(const std::shared_ptr<const T>& target, const EngineOptions& options) {
  using Layout = CudaLaneLayout<T>;
  return {std::make_unique<BlockEngine<T, Layout>>(target, Layout(target), options), nullptr};
}

}  // namespace

TunableEngine make_cuda_lanes(const std::shared_ptr<const MarkovNetwork>& target, const EngineOptions& options) {
  return make(target, options);
}

TunableEngine make_cuda_lanes(const std::shared_ptr<const GraphIsing>& target, const EngineOptions& options) {
  return make(target, options);
}

}  // namespace poise

#else

namespace poise {

// Never called: there is no GPU without CUDA.
TunableEngine make_cuda_lanes(const std::shared_ptr<const MarkovNetwork>&, const EngineOptions&) { return {}; }
TunableEngine make_cuda_lanes(const std::shared_ptr<const GraphIsing>&, const EngineOptions&) { return {}; }

}  // namespace poise

#endif
