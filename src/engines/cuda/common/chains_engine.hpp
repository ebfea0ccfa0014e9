/// Engines whose chains are on a GPU, all of them moved on together; and the tuner of those that move by a balancing
/// function, which looks at states on the CPU.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <poise/extend/engines/engine.hpp>
#include <poise/extend/engines/tuner.hpp>
#include "engines/cpu/chains/engines.hpp"

namespace poise {

/// What engines on a GPU have in common: all chains are moved on together.
template <class T>
[[nodiscard]] EngineTraits device_traits(const T& target, const EngineOptions& options) {
  EngineTraits traits;
  traits.chains = options.starts.size();
  traits.variables = target.num_variables();
  traits.entries = target.num_moves();
  if constexpr (requires { target.statistic_names(); }) traits.statistics = target.statistic_names().size();
  traits.group = traits.chains;
  return traits;
}

/// Counts over `steps` steps as fractions; zeros where nothing was counted.
template <class Count>
void copy_fractions(const std::vector<Count>& counts, std::uint64_t steps, std::span<double> out) {
  const auto all = static_cast<double>(std::max<std::uint64_t>(1, steps));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = counts.empty() ? 0.0 : static_cast<double>(counts[i]) / all;
}

/// What is told of each chain by itself, except acceptance: `of` has evals(c), get_levels(c, out) and
/// copy_marginals(c, out). No variable is frozen.
template <class Of>
void observe_each(const Of& of, const EngineTraits& traits, ChainGroup group, const Observables& out) {
  const std::size_t n = traits.variables;
  std::fill(out.frozen.begin(), out.frozen.end(), std::uint8_t{0});
  for (std::size_t k = 0; k < group.count; ++k) {
    const std::size_t c = group.first + k;
    if (!out.evals.empty()) out.evals[k] = of.evals(c);
    if (!out.levels.empty()) of.get_levels(c, out.levels.subspan(k * n, n));
    if (!out.empirical_marginals.empty()) of.copy_marginals(c, out.empirical_marginals.subspan(k * n, n));
  }
}

/// log p, statistics and distances of RBMs from sums over all chains.
template <class Sums>
void observe_rbm_sums(const Sums& sums, ChainGroup group, const Observables& out) {
  for (std::size_t k = 0; k < group.count; ++k) {
    const std::size_t c = group.first + k;
    if (!out.log_prob.empty()) out.log_prob[k] = sums.log_prob[c];
    if (!out.statistics.empty()) out.statistics[k] = static_cast<double>(sums.on[c]);
    if (!out.distance.empty()) out.distance[k] = static_cast<std::int64_t>(sums.different[c]);
  }
}

/// Whether log p, statistics or distances are wanted, which follow from sums over states.
[[nodiscard]] inline bool wants_sums(const Observables& out) {
  return !out.log_prob.empty() || !out.statistics.empty() || !out.distance.empty();
}
/// Whether sums are all that is wanted of draws.
[[nodiscard]] inline bool wants_sums_alone(const Observables& out) {
  return out.levels.empty() && out.frozen.empty() && out.empirical_marginals.empty() && out.evals.empty();
}

/// Adds conditional probabilities of states to averages, where these are wanted. average_of(c) and levels_of(c) are
/// those of a chain.
template <class T, class AverageOf, class LevelsOf>
void visit_conditionals(const T& target, ChainGroup group, AverageOf&& average_of, LevelsOf&& levels_of) {
  std::vector<double> log_ratios;
  for (std::size_t c = group.first; c < group.first + group.count; ++c) {
    RaoBlackwell& average = average_of(c);
    if (!average.sums.empty()) add_conditionals(target, target.make_state(levels_of(c)), log_ratios, average);
  }
}

/// `Chains` are those of cuda/: CudaRbmGibbsChains, and those of CudaBalancedEngine.
template <class T, class Chains>
class CudaChainsEngine : public Engine {
 public:
  CudaChainsEngine(const EngineTraits& traits, std::shared_ptr<const T> target, std::unique_ptr<Chains> chains)
      : Engine(traits),
        target_(std::move(target)),
        chains_(std::move(chains)),
        counted_from_(traits.chains, 0),
        rao_blackwell_(traits.chains) {}

  std::vector<ChainGroup> share_out(unsigned) override { return {{0, traits_.chains}}; }

  void advance(ChainGroup group, std::uint64_t steps) override {
    if (group.count != traits_.chains) throw std::logic_error("chains on a GPU are moved on together");
    chains_->advance(steps);
  }

  void observe(ChainGroup group, const Observables& out) const override {
    if (wants_sums(out)) observe_states(group, out);
    if (!out.accepted.empty()) observe_accepted(group, out);
    if (!out.proposals.empty()) observe_proposals(group, out.proposals);
    observe_each(*this, traits_, group, out);
  }

  // For observe_each.
  void get_levels(std::size_t c, std::span<Value> out) const { chains_->get_levels(c, out); }
  void copy_marginals(std::size_t c, std::span<double> out) const {
    copy_fractions(chains_->up_counts(c), chains_->steps() - counted_from_[c], out);
  }
  /// So far.
  [[nodiscard]] virtual Evals evals(std::size_t c) const = 0;

  void restart(std::size_t chain, std::span<const Value> levels) override {
    chains_->set_levels(chain, levels);
    if (!chains_->counts()) return;
    counted_from_[chain] = chains_->steps();
    chains_->set_up_counts(chain, UpCounts(traits_.variables, 0));
  }

  void start_marginals(ChainGroup, bool rao_blackwell) override {
    chains_->start_counting();
    std::fill(counted_from_.begin(), counted_from_.end(), chains_->steps());
    if (!rao_blackwell) return;
    for (RaoBlackwell& sums : rao_blackwell_) sums = {std::vector<double>(target_->num_moves(), 0.0), 0};
  }

  void visit_marginals(ChainGroup group) override {
    visit_conditionals(
        *target_, group, [&](std::size_t c) -> RaoBlackwell& { return rao_blackwell_[c]; },
        [&](std::size_t c) { return levels_of(c); });
  }

  [[nodiscard]] RaoBlackwell rao_blackwell(std::size_t chain) const override { return rao_blackwell_[chain]; }

  [[nodiscard]] std::vector<Value> levels_of(std::size_t chain) const {
    std::vector<Value> levels(traits_.variables);
    chains_->get_levels(chain, levels);
    return levels;
  }

 protected:
  using UpCounts = decltype(std::declval<const Chains&>().up_counts(0));

  /// log p, statistics and distances.
  virtual void observe_states(ChainGroup group, const Observables& out) const = 0;
  /// Acceptance probabilities, summed.
  virtual void observe_accepted(ChainGroup group, const Observables& out) const = 0;
  /// Every step is one, unless chains say otherwise.
  virtual void observe_proposals(ChainGroup group, std::span<ProposalCounts> out) const {
    std::vector<double> accepted(group.count);
    observe_accepted(group, {.accepted = accepted});
    for (std::size_t k = 0; k < group.count; ++k) out[k] = {static_cast<double>(chains_->steps()), accepted[k]};
  }

  [[nodiscard]] const T& target() const { return *target_; }
  [[nodiscard]] Chains& chains() const { return *chains_; }
  /// What chains begin with.
  void set_starts(const EngineOptions& options) {
    for (std::size_t c = 0; c < options.starts.size(); ++c) chains_->set_levels(c, options.starts[c]);
  }

  std::shared_ptr<const T> target_;
  std::unique_ptr<Chains> chains_;
  std::vector<std::uint64_t> counted_from_;  // steps, of each chain
  std::vector<RaoBlackwell> rao_blackwell_;
};

/// The chains move by a balancing function, and are saved in a way of their own: CudaFlipChains, CudaGraphFlipChains,
/// CudaRbmChains, CudaUserChains.
template <class T, class Chains>
class CudaBalancedEngine : public CudaChainsEngine<T, Chains> {
  using Base = CudaChainsEngine<T, Chains>;
  using Base::chains_;
  using Base::counted_from_;
  using Base::rao_blackwell_;

 public:
  using Base::Base;

  void set_function(const BalancingFunction& function) {
    function_ = function;
    use_function(function);
  }

  void exchange(std::size_t c, Engine& other) override {
    auto& there = dynamic_cast<CudaBalancedEngine&>(other);
    const std::vector<Value> mine = this->levels_of(c), theirs = there.levels_of(c);
    move_to(c, theirs);
    there.move_to(c, mine);
  }

  void save_common(Saver& out) const override { out(function_, chains_->steps(), chains_->counts()); }

  void load_common(Loader& in) override {
    BalancingFunction function;
    std::uint64_t steps = 0;
    bool counting = false;
    in(function, steps, counting);
    set_function(function);
    chains_->set_steps(steps);
    if (counting) chains_->start_counting();
  }

  void save_chain(std::size_t chain, Saver& out) const override {
    out(this->levels_of(chain), chains_->accepted(chain), rao_blackwell_[chain], counted_from_[chain]);
    if (chains_->counts()) out(chains_->up_counts(chain));
  }

  void load_chain(std::size_t chain, Loader& in) override {
    std::vector<Value> levels;
    double accepted = 0.0;
    in(levels, accepted, rao_blackwell_[chain], counted_from_[chain]);
    chains_->set_levels(chain, levels);
    chains_->set_accepted(chain, accepted);
    if (!chains_->counts()) return;
    typename Base::UpCounts counts;
    in(counts);
    chains_->set_up_counts(chain, counts);
  }

 protected:
  virtual void use_function(const BalancingFunction& function) = 0;

  static EngineTraits traits_of(const T& target, const EngineOptions& options) {
    EngineTraits traits = device_traits(target, options);
    traits.together = true;
    traits.of_device = true;
    return traits;
  }

 private:
  void observe_accepted(ChainGroup group, const Observables& out) const final {
    const std::vector<double> accepted = chains_->accepted();
    std::copy_n(accepted.begin() + static_cast<std::ptrdiff_t>(group.first), group.count, out.accepted.begin());
  }

  /// Puts a chain at a state; counts are kept.
  void move_to(std::size_t c, std::span<const Value> levels) {
    const auto counts = chains_->up_counts(c);  // which depend on the state until they are asked for
    chains_->set_levels(c, levels);
    if (chains_->counts()) chains_->set_up_counts(c, counts);
  }

  BalancingFunction function_;
};

/// Learns from states that are copied to chains on the CPU, which make no steps of their own; there are none where
/// nothing is learned.
template <class DeviceEngine>
class CudaChainsTuner final : public Tuner {
 public:
  CudaChainsTuner(DeviceEngine& engine, TunableEngine on_cpu) : engine_(engine), on_cpu_(std::move(on_cpu)) {}

  void set_function(const BalancingFunction& function, std::uint64_t) override {
    engine_.set_function(function);
    if (on_cpu_.tuner != nullptr) on_cpu_.tuner->set_function(function, 0);  // tables would not pay
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
  void save_chain(std::size_t chain, Saver& out) const override {
    if (on_cpu_.tuner != nullptr) on_cpu_.tuner->save_chain(chain, out);
  }
  void load_chain(std::size_t chain, Loader& in) override {
    if (on_cpu_.tuner != nullptr) on_cpu_.tuner->load_chain(chain, in);
  }

 private:
  DeviceEngine& engine_;
  TunableEngine on_cpu_;
};

/// Whether warm-up looks at transitions; a length of steps is found by acceptance alone.
[[nodiscard]] inline bool observes_transitions(const Sampler& sampler) {
  const SamplerSettings& settings = sampler.settings;
  return sampler.learns() && (settings.tuning != StepTuning::acceptance || settings.paper_schedule);
}

/// `description` is what engines on the CPU are made of (engines.hpp).
template <class DeviceEngine, class Description>
std::unique_ptr<Tuner> make_cuda_tuner(DeviceEngine& engine, const Description& description, const Sampler& sampler,
                                       const EngineOptions& options) {
  TunableEngine on_cpu;
  if (observes_transitions(sampler)) {
    EngineOptions here = options;
    here.device = Device::cpu;
    on_cpu = make_engine(description, sampler, here);
  }
  return std::make_unique<CudaChainsTuner<DeviceEngine>>(engine, std::move(on_cpu));
}

}  // namespace poise
