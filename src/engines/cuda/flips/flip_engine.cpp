/// Locally balanced single flips on Ising models, on lattices and on graphs, on a GPU, as engines.
///
/// Chains are moved on and observed on the GPU. A function is learned from their states by the tuner of chains on the
/// CPU, which are put at these states when it looks at them.
#include <utility>

#include <poise/extend/engines/samplers.hpp>
#include "engines/common/spin_terms.hpp"
#include "engines/cpu/chains/engines.hpp"
#include "engines/cuda/common/chains_engine.hpp"
#include "engines/cuda/engines.hpp"
#include "engines/cuda/flips/flip_chains.hpp"
#include "engines/cuda/flips/graph_flip_chains.hpp"
#include "models/ising/graph_ising.hpp"

namespace poise {

namespace {

/// What engines on lattices and on graphs have in common: log p and statistics from sums of spins.
template <class T, class Chains>
class FlipEngine : public CudaBalancedEngine<T, Chains> {
 protected:
  FlipEngine(const std::shared_ptr<const T>& target, std::unique_ptr<Chains> chains, const EngineOptions& options)
      : FlipEngine::CudaBalancedEngine(traits_for(*target, options), target, std::move(chains)) {
    const SpinTerms terms = spin_terms(*target);
    for (const std::int64_t field : terms.fields) sum_of_fields_ += field;
    for (const SpinSums::Edge& edge : terms.edges) sum_of_weights_ += edge.weight;
    edges_ = terms.edges.size();
  }

  void begin(const BalancingFunction& function, const EngineOptions& options) {
    this->set_function(function);
    this->set_starts(options);
  }

  [[nodiscard]] std::size_t edges() const { return edges_; }

 private:
  static EngineTraits traits_for(const T& target, const EngineOptions& options) {
    EngineTraits traits = FlipEngine::traits_of(target, options);
    traits.steps_per_sweep = target.num_moves();
    traits.chunk = 4096;
    return traits;
  }

  void observe_states(ChainGroup group, const Observables& out) const final {
    const CudaSpinChains::Sums all = this->chains().sums();
    SpinSums::Sums sums;
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      if (!out.distance.empty()) out.distance[c - group.first] = all.different[c];
      sums.spins.push_back(2 * all.up[c] - static_cast<std::int64_t>(this->traits_.variables));
      sums.fields.push_back(2 * all.fields[c] - sum_of_fields_);
      sums.edges.push_back(sum_of_weights_ - 2 * all.pairs[c]);
    }
    observe_sums(this->target(), sums, out);
  }

  std::int64_t sum_of_fields_ = 0;
  std::int64_t sum_of_weights_ = 0;
  std::size_t edges_ = 0;
};

/// From the code of a site on the device to that of the target.
Index target_code(unsigned code) { return code < 5 ? code : LatticeIsing::kUp + (code - 5); }

CudaLattice lattice_of(const LatticeIsing& target, const std::vector<Value>& reference) {
  CudaLattice lattice;
  lattice.rows = target.rows();
  lattice.columns = target.columns();
  lattice.torus = target.is_torus();
  lattice.reference = reference;
  const Index sites = target.num_variables();
  lattice.log_ratios.resize(std::size_t{cuda::kSiteCodes} * sites);
  for (unsigned code = 0; code < cuda::kSiteCodes; ++code) {
    for (Index i = 0; i < sites; ++i) {
      lattice.log_ratios[std::size_t{code} * sites + i] = target.coded_log_ratio(i, target_code(code));
    }
  }
  bool has_fields = false;
  for (Index i = 0; i < sites; ++i) {
    lattice.fields.push_back(target.field_units(i));
    has_fields = has_fields || lattice.fields.back() != 0;
  }
  if (!has_fields) lattice.fields.clear();
  return lattice;
}

class LatticeFlipEngine final : public FlipEngine<LatticeIsing, CudaFlipChains> {
 public:
  LatticeFlipEngine(const std::shared_ptr<const LatticeIsing>& target, const BalancingFunction& function,
                    const EngineOptions& options)
      : LatticeFlipEngine(target, lattice_of(*target, options.reference), function, options) {}

 private:
  LatticeFlipEngine(const std::shared_ptr<const LatticeIsing>& target, const CudaLattice& lattice,
                    const BalancingFunction& function, const EngineOptions& options)
      : FlipEngine(target,
                   std::make_unique<CudaFlipChains>(lattice, options.starts.size(), options.seed, options.first_chain),
                   options),
        log_ratios_(lattice.log_ratios) {
    begin(function, options);
  }

  void use_function(const BalancingFunction& function) override {
    std::vector<double> log_g;
    log_g.reserve(log_ratios_.size());
    for (const double u : log_ratios_) log_g.push_back(function.log_g(u));
    chains().set_weights(log_g);
  }

  [[nodiscard]] Evals evals(std::size_t) const override {
    Evals evals;
    evals.ratio = traits_.variables + 4 * chains().steps();
    return evals;
  }

  std::vector<double> log_ratios_;  // of flips, by code and site
};

CudaGraph graph_of(const std::shared_ptr<const GraphIsing>& target, const std::vector<Value>& reference) {
  return {target, {}, reference};
}

/// Log ratios are those of the same model on a graph, whose unit suits both fields and couplings; log p, which is to be
/// the lattice's own to the last bit, is summed in the lattice's unit.
CudaGraph graph_of(const std::shared_ptr<const LatticeIsing>& target, const std::vector<Value>& reference) {
  return {std::make_shared<const GraphIsing>(graph_at(*target, 1.0)), spin_terms(*target).fields, reference};
}

template <class T>
class GraphFlipEngine final : public FlipEngine<T, CudaGraphFlipChains> {
 public:
  GraphFlipEngine(const std::shared_ptr<const T>& target, const BalancingFunction& function,
                  const EngineOptions& options)
      : GraphFlipEngine::FlipEngine(
            target,
            std::make_unique<CudaGraphFlipChains>(graph_of(target, options.reference), options.starts.size(),
                                                  options.seed, options.first_chain),
            options) {
    affected_ = 1.0 + 2.0 * static_cast<double>(this->edges()) / target->num_variables();
    this->begin(function, options);
  }

 private:
  void use_function(const BalancingFunction& function) override { this->chains().set_function(function); }

  /// By the mean of what flips affect.
  [[nodiscard]] Evals evals(std::size_t) const override {
    Evals evals;
    evals.ratio =
        this->traits_.variables + static_cast<std::uint64_t>(affected_ * static_cast<double>(this->chains().steps()));
    evals.balance = evals.ratio;
    return evals;
  }

  double affected_ = 1.0;
};

template <class E, class T>
TunableEngine make_flips(const std::shared_ptr<const T>& target, const Sampler& sampler, const EngineOptions& options) {
  auto engine = std::make_unique<E>(target, BalancingFunction(sampler.settings.function), options);
  auto tuner = make_cuda_tuner(*engine, target, sampler, options);
  return {std::move(engine), std::move(tuner)};
}

}  // namespace

TunableEngine make_cuda_flips(const Model& model, const Sampler& sampler, const EngineOptions& options) {
  const auto& target = std::get<std::shared_ptr<const LatticeIsing>>(model.description);
  return make_flips<LatticeFlipEngine>(target, sampler, options);
}

TunableEngine make_cuda_graph_flips(const Model& model, const Sampler& sampler, const EngineOptions& options) {
  if (const auto* lattice = std::get_if<std::shared_ptr<const LatticeIsing>>(&model.description)) {
    return make_flips<GraphFlipEngine<LatticeIsing>>(*lattice, sampler, options);
  }
  const auto& graph = std::get<std::shared_ptr<const GraphIsing>>(model.description);
  return make_flips<GraphFlipEngine<GraphIsing>>(graph, sampler, options);
}

}  // namespace poise
