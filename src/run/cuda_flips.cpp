/// An engine and a tuner that share chains on a GPU.
#include "cuda_flips.hpp"

#ifdef POISE_CUDA

#include <algorithm>
#include <utility>

#include <poise/cuda/flip_chains.hpp>
#include <poise/run/samplers.hpp>
#include "engines.hpp"
#include "spin_terms.hpp"

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
  lattice.log_ratios.resize(std::size_t{CudaLattice::kCodes} * sites);
  for (unsigned code = 0; code < CudaLattice::kCodes; ++code) {
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

class CudaFlipEngine final : public Engine {
 public:
  CudaFlipEngine(std::shared_ptr<const LatticeIsing> target, const BalancingFunction& function,
                 const EngineOptions& options)
      : Engine(traits_of(*target, options)),
        target_(std::move(target)),
        lattice_(lattice_of(*target_, options.reference)),
        chains_(lattice_, options.starts.size(), options.seed, options.first_chain),
        reference_(options.reference),
        rao_blackwell_(options.starts.size()) {
    for (const std::int64_t field : lattice_.fields) sum_of_fields_ += field;
    for (Index i = 0; i < target_->num_variables(); ++i) {
      for (const Index j : target_->neighbours(i)) edges_ += j > i ? 1 : 0;
    }
    set_function(function);
    for (std::size_t c = 0; c < options.starts.size(); ++c) chains_.set_levels(c, options.starts[c]);
  }

  void set_function(const BalancingFunction& function) {
    function_ = function;
    std::vector<double> log_g;
    log_g.reserve(lattice_.log_ratios.size());
    for (const double u : lattice_.log_ratios) log_g.push_back(function.log_g(u));
    chains_.set_weights(log_g);
  }

  std::vector<ChainGroup> share_out(unsigned) override { return {{0, traits_.chains}}; }

  void advance(ChainGroup group, std::uint64_t steps) override {
    if (group.count != traits_.chains) throw std::logic_error("chains on a GPU are moved on together");
    chains_.advance(steps);
  }

  void observe(ChainGroup group, const Observables& out) const override {
    if (!out.log_prob.empty() || !out.statistics.empty() || !out.distance.empty()) observe_sums_of(group, out);
    if (!out.accepted.empty()) {
      const std::vector<double> accepted = chains_.accepted();
      std::copy_n(accepted.begin() + static_cast<std::ptrdiff_t>(group.first), group.count, out.accepted.begin());
    }
    const std::size_t n = traits_.variables;
    for (std::size_t k = 0; k < group.count; ++k) {
      const std::size_t c = group.first + k;
      if (!out.evals.empty()) {
        out.evals[k] = {};
        out.evals[k].ratio = n + 4 * chains_.steps();
      }
      if (!out.levels.empty()) chains_.get_levels(c, out.levels.subspan(k * n, n));
      if (!out.frozen.empty()) std::fill_n(out.frozen.begin() + static_cast<std::ptrdiff_t>(k * n), n, std::uint8_t{0});
      if (!out.empirical_marginals.empty()) copy_marginals(c, out.empirical_marginals.subspan(k * n, n));
    }
  }

  void restart(std::size_t chain, std::span<const Value> levels) override {
    chains_.set_levels(chain, levels);
    if (chains_.counts()) {
      throw std::logic_error("chains on a GPU that are counted are not put elsewhere");
    }
  }

  void start_marginals(ChainGroup, bool rao_blackwell) override {
    chains_.start_counting();
    if (!rao_blackwell) return;
    for (RaoBlackwell& sums : rao_blackwell_) sums = {std::vector<double>(target_->num_moves(), 0.0), 0};
  }

  void visit_marginals(ChainGroup group) override {
    std::vector<double> log_ratios;
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      if (rao_blackwell_[c].sums.empty()) continue;
      add_conditionals(*target_, target_->make_state(levels_of(c)), log_ratios, rao_blackwell_[c]);
    }
  }

  [[nodiscard]] RaoBlackwell rao_blackwell(std::size_t chain) const override { return rao_blackwell_[chain]; }

  void save_common(Saver& out) const override {
    out(function_, chains_.steps(), chains_.counts(), chains_.counted_from());
  }

  void load_common(Loader& in) override {
    BalancingFunction function;
    std::uint64_t steps = 0;
    bool counting = false;
    in(function, steps, counting, loaded_counted_from_);
    set_function(function);
    chains_.set_steps(steps);
    if (counting) chains_.start_counting();
  }

  void save_chain(std::size_t chain, Saver& out) const override {
    out(levels_of(chain), chains_.accepted(chain), rao_blackwell_[chain]);
    if (chains_.counts()) out(chains_.up_counts(chain));
  }

  void load_chain(std::size_t chain, Loader& in) override {
    std::vector<Value> levels;
    double accepted = 0.0;
    in(levels, accepted, rao_blackwell_[chain]);
    chains_.set_levels(chain, levels);
    chains_.set_accepted(chain, accepted);
    if (!chains_.counts()) return;
    std::vector<std::int64_t> counts;
    in(counts);
    chains_.set_up_counts(chain, loaded_counted_from_, counts);
  }

  [[nodiscard]] std::vector<Value> levels_of(std::size_t chain) const {
    std::vector<Value> levels(traits_.variables);
    chains_.get_levels(chain, levels);
    return levels;
  }

 private:
  static EngineTraits traits_of(const LatticeIsing& target, const EngineOptions& options) {
    EngineTraits traits;
    traits.chains = options.starts.size();
    traits.variables = target.num_variables();
    traits.entries = target.num_moves();
    traits.statistics = LatticeIsing::statistic_names().size();
    traits.steps_per_sweep = target.num_moves();
    traits.chunk = 4096;
    traits.group = traits.chains;
    return traits;
  }

  void observe_sums_of(ChainGroup group, const Observables& out) const {
    const CudaFlipChains::Sums all = chains_.sums();
    SpinSums::Sums sums;
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      if (!out.distance.empty()) out.distance[c - group.first] = all.different[c];
      sums.spins.push_back(2 * all.up[c] - static_cast<std::int64_t>(traits_.variables));
      sums.fields.push_back(2 * all.fields[c] - sum_of_fields_);
      sums.edges.push_back(edges_ - 2 * all.pairs[c]);
    }
    observe_sums(*target_, sums, out);
  }

  void copy_marginals(std::size_t c, std::span<double> out) const {
    const auto steps = static_cast<double>(std::max<std::uint64_t>(1, chains_.steps() - chains_.counted_from()));
    if (!chains_.counts()) {
      std::fill(out.begin(), out.end(), 0.0);
      return;
    }
    const std::vector<std::int64_t> counts = chains_.up_counts(c);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(counts[i]) / steps;
  }

  std::shared_ptr<const LatticeIsing> target_;
  CudaLattice lattice_;
  CudaFlipChains chains_;
  BalancingFunction function_;
  std::vector<Value> reference_;
  std::int64_t sum_of_fields_ = 0;
  std::int64_t edges_ = 0;
  std::vector<RaoBlackwell> rao_blackwell_;
  std::uint64_t loaded_counted_from_ = 0;  // while chains are loaded
};

class CudaFlipTuner final : public Tuner {
 public:
  CudaFlipTuner(CudaFlipEngine& engine, TunableEngine on_cpu) : engine_(engine), on_cpu_(std::move(on_cpu)) {}

  void set_function(const BalancingFunction& function, std::uint64_t) override {
    engine_.set_function(function);
    on_cpu_.tuner->set_function(function, 0);  // it makes no steps: tables would not pay
  }
  void reweigh(std::size_t) override {}
  void observe(std::size_t chain, const TransitionGradientOptions& options, TransitionGradient& out) override {
    on_cpu_.engine->restart(chain, engine_.levels_of(chain));
    on_cpu_.tuner->observe(chain, options, out);
  }
  void backward(std::size_t chain, const TransitionGradient& observed, std::span<const double> coefficients,
                std::span<double> out) override {
    on_cpu_.tuner->backward(chain, observed, coefficients, out);
  }
  void save_chain(std::size_t chain, Saver& out) const override { on_cpu_.tuner->save_chain(chain, out); }
  void load_chain(std::size_t chain, Loader& in) override { on_cpu_.tuner->load_chain(chain, in); }

 private:
  CudaFlipEngine& engine_;
  TunableEngine on_cpu_;
};

}  // namespace

TunableEngine make_cuda_flips(const std::shared_ptr<const LatticeIsing>& target, const Sampler& sampler,
                              const EngineOptions& options) {
  auto engine = std::make_unique<CudaFlipEngine>(target, BalancingFunction(sampler.settings.function), options);
  std::unique_ptr<Tuner> tuner;
  if (sampler.learns()) {
    EngineOptions here = options;
    here.device = Device::cpu;
    tuner = std::make_unique<CudaFlipTuner>(*engine, make_engine(target, sampler, here));
  }
  return {std::move(engine), std::move(tuner)};
}

}  // namespace poise

#else

namespace poise {

// Never called: there is no GPU without CUDA.
TunableEngine make_cuda_flips(const std::shared_ptr<const LatticeIsing>&, const Sampler&, const EngineOptions&) {
  return {};
}

}  // namespace poise

#endif
