/// Gibbs on Ising models with chains as bits, on a GPU, as an engine.
#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include <poise/extend/base/hot.hpp>
#include "engines/common/spin_terms.hpp"
#include "engines/cpu/tile_engine.hpp"
#include "engines/cuda/bits/bit_chains.hpp"
#include "engines/cuda/bits/bit_tile.hpp"
#include "engines/cuda/engines.hpp"

namespace poise {

namespace {

/// Chains of Ising models as bits, on a GPU: one tile has them all, a CudaBitTile, or CudaBitChains where they are
/// few.
template <class T, class B>
class CudaBitLayout {
 public:
  using Tile = B;
  static constexpr std::size_t kMostChains = std::numeric_limits<std::size_t>::max();
  static constexpr bool kRaoBlackwellises = false;
  static constexpr bool kAllPossible = true;

  CudaBitLayout(const std::shared_ptr<const T>& target, BitModel model)
      : tables_(std::make_shared<const BitTables>(std::move(model))), terms_(std::make_shared<CudaSpinTerms>()) {
    const SpinTerms terms = spin_terms(*target);
    bool has_fields = false;
    bool alike = true;
    terms_->fields.resize(terms.fields.size());
    for (Index i = 0; i < terms.fields.size(); ++i) {
      terms_->fields[tables_->position(i)] = terms.fields[i];
      sum_of_fields_ += terms.fields[i];
      has_fields = has_fields || terms.fields[i] != 0;
    }
    if (!has_fields) terms_->fields.clear();
    for (const SpinSums::Edge& edge : terms.edges) {
      terms_->edges.push_back({tables_->position(edge.first), tables_->position(edge.second)});
      terms_->weights.push_back(edge.weight);
      sum_of_weights_ += edge.weight;
      alike = alike && edge.weight == 1;
    }
    if (alike) terms_->weights.clear();
  }

  void set_reference(std::span<const Value> reference) {
    terms_->reference.resize(reference.size());
    for (Index i = 0; i < reference.size(); ++i) terms_->reference[tables_->position(i)] = reference[i];
  }
  [[nodiscard]] static std::vector<ChainGroup> group(std::size_t chains, std::uint64_t, unsigned) {
    return {{0, chains}};
  }
  [[nodiscard]] Tile make_tile(ChainGroup group, std::uint64_t seed, std::uint64_t first_chain) const {
    return {tables_, terms_, group, seed, first_chain};
  }
  void observe(const T& target, const Tile& tile, const Observables& out) const {
    if (!out.log_prob.empty() || !out.statistics.empty() || !out.distance.empty()) tell(target, tile.sums(), out);
    if (!out.levels.empty()) tile.get_all_levels(out.levels);
  }
  /// Draws of which no states are wanted: so many that numbers of all chains take some tens of megabytes.
  static std::size_t draws_at_once(std::size_t chains) {
    return std::clamp<std::size_t>((std::size_t{1} << 20) / std::max<std::size_t>(1, chains), 32, 1024);
  }
  void sweep_and_observe(const T& target, Tile& tile, std::uint64_t sweeps, std::span<const Observables> draws) const {
    const std::uint64_t before = tile.sweeps();
    tile.sweep_and_sum(sweeps, draws.size(), [&](std::size_t draw, const CudaSpinSums& sums) {
      tell(target, sums, draws[draw]);
      observe_sweeps(before + (draw + 1) * sweeps, draws[draw]);
    });
  }

 private:
  void tell(const T& target, const CudaSpinSums& sums, const Observables& out) const {
    if (!out.distance.empty()) std::copy(sums.different.begin(), sums.different.end(), out.distance.begin());
    const T* const of = &target;
    const std::size_t chains = sums.up.size();
    const std::int64_t* const up = sums.up.data();
    const std::int64_t* const fields = sums.fields.data();
    const std::int64_t* const edges = sums.edges.data();
    const std::int64_t variables = tables_->variables(), all_fields = sum_of_fields_, all_weights = sum_of_weights_;
    double* const log_prob = out.log_prob.empty() ? nullptr : out.log_prob.data();
    double* const statistics = out.statistics.empty() ? nullptr : out.statistics.data();
    hot([=] {
      typename T::State summed;
      for (std::size_t k = 0; k < chains; ++k) {
        set_sums({2 * up[k] - variables, 2 * fields[k] - all_fields, all_weights - 2 * edges[k]}, summed);
        if (log_prob != nullptr) log_prob[k] = of->log_prob(summed);
        if (statistics != nullptr) of->statistics(summed, {statistics + k, 1});
      }
    });
  }

  std::shared_ptr<const BitTables> tables_;
  std::shared_ptr<CudaSpinTerms> terms_;
  std::int64_t sum_of_fields_ = 0;
  std::int64_t sum_of_weights_ = 0;
};

template <class T>
TunableEngine make_bits(const std::shared_ptr<const T>& target, const EngineOptions& options) {
  const auto engine = [&]<class Tile>(std::type_identity<Tile>) -> TunableEngine {
    using Layout = CudaBitLayout<T, Tile>;
    return {std::make_unique<TileEngine<T, Layout>>(target, Layout(target, bit_model(target)), options)};
  };
  return options.starts.size() <= CudaBitChains::kMost ? engine(std::type_identity<CudaBitChains>())
                                                       : engine(std::type_identity<CudaBitTile>());
}

}  // namespace

TunableEngine make_cuda_bits(const Model& model, const Sampler&, const EngineOptions& options) {
  if (const auto* lattice = std::get_if<std::shared_ptr<const LatticeIsing>>(&model.description)) {
    return make_bits(*lattice, options);
  }
  return make_bits(std::get<std::shared_ptr<const GraphIsing>>(model.description), options);
}

}  // namespace poise
