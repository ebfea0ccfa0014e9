/// Locally balanced single flips on Ising lattices, on a GPU, as an engine.
///
/// Chains are moved on and observed on the GPU. A function is learned from their states by the tuner of chains on the
/// CPU, which are put at these states when it looks at them.
#include "engines/cuda/engines.hpp"

#include <utility>

#include <poise/extend/engines/samplers.hpp>
#include "engines/common/spin_terms.hpp"
#include "engines/cpu/chains/engines.hpp"
#include "engines/cuda/common/chains_engine.hpp"
#include "engines/cuda/flips/flip_chains.hpp"

namespace poise {

namespace {

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

class CudaFlipEngine final : public CudaChainsEngine<LatticeIsing, CudaFlipChains> {
 public:
  CudaFlipEngine(const std::shared_ptr<const LatticeIsing>& target, const BalancingFunction& function,
                 const EngineOptions& options)
      : CudaFlipEngine(target, lattice_of(*target, options.reference), function, options) {}

 private:
  CudaFlipEngine(const std::shared_ptr<const LatticeIsing>& target, const CudaLattice& lattice,
                 const BalancingFunction& function, const EngineOptions& options)
      : CudaChainsEngine(
            traits_for(*target, options), target,
            std::make_unique<CudaFlipChains>(lattice, options.starts.size(), options.seed, options.first_chain)),
        log_ratios_(lattice.log_ratios) {
    for (const std::int64_t field : lattice.fields) sum_of_fields_ += field;
    for (Index i = 0; i < target->num_variables(); ++i) {
      for (const Index j : target->neighbours(i)) edges_ += j > i ? 1 : 0;
    }
    set_function(function);
    for (std::size_t c = 0; c < options.starts.size(); ++c) chains().set_levels(c, options.starts[c]);
  }

  static EngineTraits traits_for(const LatticeIsing& target, const EngineOptions& options) {
    EngineTraits traits = traits_of(target, options);
    traits.steps_per_sweep = target.num_moves();
    traits.chunk = 4096;
    return traits;
  }

  void use_function(const BalancingFunction& function) override {
    std::vector<double> log_g;
    log_g.reserve(log_ratios_.size());
    for (const double u : log_ratios_) log_g.push_back(function.log_g(u));
    chains().set_weights(log_g);
  }

  void observe_states(ChainGroup group, const Observables& out) const override {
    const CudaFlipChains::Sums all = chains().sums();
    SpinSums::Sums sums;
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      if (!out.distance.empty()) out.distance[c - group.first] = all.different[c];
      sums.spins.push_back(2 * all.up[c] - static_cast<std::int64_t>(traits_.variables));
      sums.fields.push_back(2 * all.fields[c] - sum_of_fields_);
      sums.edges.push_back(edges_ - 2 * all.pairs[c]);
    }
    observe_sums(target(), sums, out);
  }

  [[nodiscard]] Evals evals() const override {
    Evals evals;
    evals.ratio = traits_.variables + 4 * chains().steps();
    return evals;
  }

  std::vector<double> log_ratios_;  // of flips, by code and site
  std::int64_t sum_of_fields_ = 0;
  std::int64_t edges_ = 0;
};

}  // namespace

TunableEngine make_cuda_flips(const Model& model, const Sampler& sampler, const EngineOptions& options) {
  const auto& target = std::get<std::shared_ptr<const LatticeIsing>>(model.description);
  auto engine = std::make_unique<CudaFlipEngine>(target, BalancingFunction(sampler.settings.function), options);
  auto tuner = make_cuda_tuner(*engine, target, sampler, options);
  return {std::move(engine), std::move(tuner)};
}

}  // namespace poise
