/// Single flips on graphs as an engine: which graph a model is, and what sums of spins say of a state.
#include "engines/cuda/flips/graph_flip_engine.hpp"

#ifdef POISE_CUDA

#include <utility>

#include <poise/extend/engines/samplers.hpp>
#include "engines/common/spin_terms.hpp"
#include "engines/cpu/chains/engines.hpp"
#include "engines/cuda/common/chains_engine.hpp"
#include "engines/cuda/flips/graph_flip_chains.hpp"
#include "models/ising/lattice_ising.hpp"

namespace poise {

namespace {

CudaGraph graph_of(const std::shared_ptr<const GraphIsing>& target, const std::vector<Value>& reference) {
  return {target, {}, reference};
}

/// Log ratios are those of the same model on a graph, whose unit suits both fields and couplings; log p, which is to be
/// the lattice's own to the last bit, is summed in the lattice's unit.
CudaGraph graph_of(const std::shared_ptr<const LatticeIsing>& target, const std::vector<Value>& reference) {
  CudaGraph graph;
  for (Index i = 0; i < target->num_variables(); ++i) graph.lattice_fields.push_back(target->field_units(i));
  graph.target = lattice_graph(*target);
  graph.reference = reference;
  return graph;
}

template <class T>
class CudaGraphFlipEngine final : public CudaChainsEngine<T, CudaGraphFlipChains> {
 public:
  CudaGraphFlipEngine(const std::shared_ptr<const T>& target, const BalancingFunction& function,
                      const EngineOptions& options)
      : CudaGraphFlipEngine::CudaChainsEngine(
            traits_for(*target, options), target,
            std::make_unique<CudaGraphFlipChains>(graph_of(target, options.reference), options.starts.size(),
                                                  options.seed, options.first_chain)) {
    const SpinTerms terms = spin_terms(*target);
    for (const std::int64_t field : terms.fields) sum_of_fields_ += field;
    for (const SpinSums::Edge& edge : terms.edges) sum_of_weights_ += edge.weight;
    affected_ = 1.0 + 2.0 * static_cast<double>(terms.edges.size()) / target->num_variables();
    this->set_function(function);
    for (std::size_t c = 0; c < options.starts.size(); ++c) this->chains().set_levels(c, options.starts[c]);
  }

 private:
  static EngineTraits traits_for(const T& target, const EngineOptions& options) {
    EngineTraits traits = CudaGraphFlipEngine::traits_of(target, options);
    traits.steps_per_sweep = target.num_moves();
    traits.chunk = 4096;
    return traits;
  }

  void use_function(const BalancingFunction& function) override { this->chains().set_function(function); }

  void observe_states(ChainGroup group, const Observables& out) const override {
    const CudaGraphFlipChains::Sums all = this->chains().sums();
    SpinSums::Sums sums;
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      if (!out.distance.empty()) out.distance[c - group.first] = all.different[c];
      sums.spins.push_back(2 * all.up[c] - static_cast<std::int64_t>(this->traits_.variables));
      sums.fields.push_back(2 * all.fields[c] - sum_of_fields_);
      sums.edges.push_back(sum_of_weights_ - 2 * all.pairs[c]);
    }
    observe_sums(this->target(), sums, out);
  }

  /// By the mean of what flips affect.
  [[nodiscard]] Evals evals() const override {
    Evals evals;
    evals.ratio =
        this->traits_.variables + static_cast<std::uint64_t>(affected_ * static_cast<double>(this->chains().steps()));
    evals.balance = evals.ratio;
    return evals;
  }

  std::int64_t sum_of_fields_ = 0;
  std::int64_t sum_of_weights_ = 0;
  double affected_ = 1.0;
};

template <class T>
TunableEngine make(const std::shared_ptr<const T>& target, const Sampler& sampler, const EngineOptions& options) {
  auto engine = std::make_unique<CudaGraphFlipEngine<T>>(target, BalancingFunction(sampler.settings.function), options);
  auto tuner = make_cuda_tuner(*engine, target, sampler, options);
  return {std::move(engine), std::move(tuner)};
}

}  // namespace

TunableEngine make_cuda_graph_flips(const std::shared_ptr<const GraphIsing>& target, const Sampler& sampler,
                                    const EngineOptions& options) {
  return make(target, sampler, options);
}

TunableEngine make_cuda_graph_flips(const std::shared_ptr<const LatticeIsing>& target, const Sampler& sampler,
                                    const EngineOptions& options) {
  return make(target, sampler, options);
}

}  // namespace poise

#else

namespace poise {

// Never called: there is no GPU without CUDA.
TunableEngine make_cuda_graph_flips(const std::shared_ptr<const GraphIsing>&, const Sampler&, const EngineOptions&) {
  return {};
}
TunableEngine make_cuda_graph_flips(const std::shared_ptr<const LatticeIsing>&, const Sampler&, const EngineOptions&) {
  return {};
}

}  // namespace poise

#endif
