/// Which engines there are on a GPU: Gibbs with chains as bits and across lanes, single flips on lattices and graphs,
/// block Gibbs on RBMs, proposals from slopes on RBMs and user targets, and ladders of all but these.
#include "engines/cuda/cuda_engine.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "engines/cuda/bits/bit_block.hpp"
#include "engines/cuda/bits/bit_chains.hpp"
#include <poise/extend/base/hot.hpp>
#include "engines/cpu/lanes/lane_layout.hpp"
#include <poise/extend/engines/samplers.hpp>
#include "engines/cuda/flips/flip_engine.hpp"
#include "engines/cuda/flips/graph_flip_engine.hpp"
#include "engines/cuda/lanes/lane_engine.hpp"
#include "engines/cuda/rbm/rbm_engine.hpp"
#include "engines/cuda/rbm/rbm_gibbs_engine.hpp"
#include "engines/cuda/gradient/gradient_form.hpp"
#include "engines/cuda/gradient/user_engine.hpp"
#include "engines/common/spin_terms.hpp"
#include "engines/cpu/tempering/temper.hpp"

namespace poise {

namespace {

#ifdef POISE_CUDA

/// Chains of Ising models as bits, on a GPU: one block has them all, a CudaBitBlock, or CudaBitChains where they are
/// few.
template <class T, class B>
class CudaBitLayout {
 public:
  using Block = B;
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
  [[nodiscard]] Block make_block(ChainGroup group, std::uint64_t seed, std::uint64_t first_chain) const {
    return {tables_, terms_, group, seed, first_chain};
  }
  void observe(const T& target, const Block& block, const Observables& out) const {
    if (!out.log_prob.empty() || !out.statistics.empty() || !out.distance.empty()) tell(target, block.sums(), out);
    if (!out.levels.empty()) block.get_all_levels(out.levels);
  }
  /// Draws of which no states are wanted: so many that numbers of all chains take some tens of megabytes.
  static std::size_t draws_at_once(std::size_t chains) {
    return std::clamp<std::size_t>((std::size_t{1} << 20) / std::max<std::size_t>(1, chains), 32, 1024);
  }
  void sweep_and_observe(const T& target, Block& block, std::uint64_t sweeps,
                         std::span<const Observables> draws) const {
    const std::uint64_t before = block.sweeps();
    block.sweep_and_sum(sweeps, draws.size(), [&](std::size_t draw, const CudaSpinSums& sums) {
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
TunableEngine make(const std::shared_ptr<const T>& target, const EngineOptions& options) {
  const auto engine = [&]<class Block>(std::type_identity<Block>) -> TunableEngine {
    using Layout = CudaBitLayout<T, Block>;
    return {std::make_unique<BlockEngine<T, Layout>>(target, Layout(target, bit_model(target)), options)};
  };
  return options.starts.size() <= CudaBitChains::kMost ? engine(std::type_identity<CudaBitChains>())
                                                       : engine(std::type_identity<CudaBitBlock>());
}

#else

// Never called: there is no GPU without CUDA.
template <class T>
TunableEngine make(const std::shared_ptr<const T>&, const EngineOptions&) {
  return {};
}

#endif

// Of lattices on which single flips have chains of their own; a larger one is a graph to them.
constexpr Index kMostSide = 64;

/// Whether a step is a locally balanced flip of one variable.
bool flips_one(const Sampler& sampler) {
  return is_balanced(sampler) && !sampler.settings.many && !sampler.settings.first_order && sampler.settings.block == 1;
}

template <class T>
bool has_bits(const std::shared_ptr<const T>& target) {
  return BitTables::fits(bit_model(target));
}

/// Whether Gibbs has its chains as bits there; across lanes otherwise.
bool has_bits(const Model& model) {
  if (std::holds_alternative<std::shared_ptr<const LatticeIsing>>(model.description)) return true;
  const auto* graph = std::get_if<std::shared_ptr<const GraphIsing>>(&model.description);
  return graph != nullptr && has_bits(*graph);
}

/// Whether chains, or replicas of ladders, can be across lanes there.
bool has_lanes(const Model& model) {
  if (std::holds_alternative<std::shared_ptr<const LatticeIsing>>(model.description)) return true;
  if (const auto* graph = std::get_if<std::shared_ptr<const GraphIsing>>(&model.description)) {
    return LaneModel::fits(lane_source(*graph));
  }
  const auto* network = std::get_if<NetworkDescription>(&model.description);
  return network != nullptr && LaneModel::fits(lane_source(network->target));
}

// Measured (docs/gpu.md): however few chains there are, a sweep on a GPU takes some eight microseconds and a step of
// single flips one; a core makes about two updates of Gibbs a nanosecond, and a flip in 130. A step of an RBM takes
// eight microseconds there; a core makes a hundred thousand a second of an RBM with 784 x 500 weights.
constexpr double kUpdatesOfACore = 16000.0;
constexpr double kFlipsOfACore = 7.0;
constexpr double kWeightsOfACore = 400000.0;
// With chains across lanes a core makes some 0.5 updates a nanosecond, and a sweep takes a GPU eleven microseconds.
constexpr double kLaneUpdatesOfACore = 6000.0;
// A step of a ladder, of sixteen replicas or more, has four launches beside the sweep; of an RBM, two beside four
// sweeps.
constexpr double kReplicaUpdatesOfACore = 2.0 * kLaneUpdatesOfACore;
constexpr double kReplicas = 16.0;

bool runs_on_cuda(const Model& model, const Sampler& sampler) {
  if (is_row<TemperRow>(sampler)) {
    // Heated user code answers all temperatures in one call.
    if (std::holds_alternative<CallbackDescription>(model.description)) return false;
    const Sampler inner = tempered_sampler(model, sampler);
    const auto* rbm = std::get_if<std::shared_ptr<const Rbm>>(&model.description);
    return rbm != nullptr ? has_cuda_rbm_gibbs(**rbm, inner) : runs_on_cuda(model, inner);
  }
  if (const auto* callback = std::get_if<CallbackDescription>(&model.description)) {
    return why_not_on_cuda(*callback, sampler).empty();
  }
  if (const auto* rbm = std::get_if<std::shared_ptr<const Rbm>>(&model.description)) {
    if (has_cuda_rbm_gibbs(**rbm, sampler)) return true;
    return cuda_slope_form(sampler).has_value() && (*rbm)->num_variables() <= CudaSlopeChains::kMostVariables;
  }
  if (flips_one(sampler)) {
    return std::holds_alternative<std::shared_ptr<const LatticeIsing>>(model.description) ||
           std::holds_alternative<std::shared_ptr<const GraphIsing>>(model.description);
  }
  return is_single_site_gibbs(sampler) && (has_bits(model) || has_lanes(model));
}

}  // namespace

Device faster_device(const Model& model, const Sampler& sampler, std::size_t chains, unsigned threads) {
  std::string why;
  if (!runs_on_cuda(model, sampler) || cuda_devices(why).empty()) return Device::cpu;
  const double cores = threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
  const auto together = static_cast<double>(chains);
  const bool tempered = is_row<TemperRow>(sampler);
  const bool faster = [&] {
    // User code is where it is: what it would have to copy to the host and back costs more than it could save.
    if (std::holds_alternative<CallbackDescription>(model.description)) return true;
    if (const auto* rbm = std::get_if<std::shared_ptr<const Rbm>>(&model.description)) {
      const auto weights = static_cast<double>((*rbm)->weights().weights.size());
      return together * weights > kWeightsOfACore * cores / (tempered ? kReplicas / 2.0 : 1.0);
    }
    if (tempered && !(is_single_site_gibbs(tempered_sampler(model, sampler)) && has_lanes(model))) return false;
    if (flips_one(sampler)) return together > kFlipsOfACore * cores;
    if (tempered) {
      return together * kReplicas * static_cast<double>(model.layout.variables) > kReplicaUpdatesOfACore * cores;
    }
    const double least = has_bits(model) ? kUpdatesOfACore : kLaneUpdatesOfACore;
    return together * static_cast<double>(model.layout.variables) > least * cores;
  }();
  return faster ? Device::cuda : Device::cpu;
}

void require_cuda(const Model& model, const Sampler& sampler) {
  require_cuda();
  if (const auto* callback = std::get_if<CallbackDescription>(&model.description)) {
    const std::string why = why_not_on_cuda(*callback, sampler);
    if (why.empty()) return;
    throw InputError(
        fmt::format("{} of {} does not run on a GPU: {}; leave device out", sampler.name, model.name, why));
  }
  if (!runs_on_cuda(model, sampler)) {
    throw InputError(fmt::format(
        "{} of {} does not run on a GPU: 'gibbs' does, on Ising models and on networks in which a variable has at most "
        "{:.0f} factors on average and tables have at most {:.0f} entries in all; 'lb' and 'lsb' do, on Ising models; "
        "'rbm-gibbs' does, on RBMs; 'temper' does with these; and 'gwg', 'flsb', 'dlmc', 'dlsb' and 'dmala' do, on "
        "RBMs "
        "and on targets of your own, without 'temper'; RBMs may have {} units in a layer; leave --device out",
        sampler.name, model.name, LaneModel::kMostTerms, LaneModel::kMostEntries, CudaSlopeChains::kMostVariables));
  }
}

TunableEngine make_cuda_engine(const Model& model, const Sampler& sampler, const EngineOptions& options) {
  require_cuda(model, sampler);
  if (is_row<TemperRow>(sampler)) return make_tempered_engine(model, sampler, options);
  if (const auto* lattice = std::get_if<std::shared_ptr<const LatticeIsing>>(&model.description)) {
    if (!flips_one(sampler)) return make(*lattice, options);
    const bool small = std::max((*lattice)->rows(), (*lattice)->columns()) <= kMostSide;
    return small ? make_cuda_flips(*lattice, sampler, options) : make_cuda_graph_flips(*lattice, sampler, options);
  }
  if (const auto* rbm = std::get_if<std::shared_ptr<const Rbm>>(&model.description)) {
    return has_cuda_rbm_gibbs(**rbm, sampler) ? make_cuda_rbm_gibbs(*rbm, options)
                                              : make_cuda_rbm(*rbm, sampler, options);
  }
  if (const auto* callback = std::get_if<CallbackDescription>(&model.description)) {
    return make_cuda_user(*callback, sampler, options);
  }
  if (const auto* network = std::get_if<NetworkDescription>(&model.description)) {
    return make_cuda_lanes(network->target, options);
  }
  const auto& graph = std::get<std::shared_ptr<const GraphIsing>>(model.description);
  if (flips_one(sampler)) return make_cuda_graph_flips(graph, sampler, options);
  return has_bits(graph) ? make(graph, options) : make_cuda_lanes(graph, options);
}

}  // namespace poise
