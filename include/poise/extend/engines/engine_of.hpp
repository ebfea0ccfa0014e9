/// The engine of one target and one kernel type, and its tuner.
#pragma once

#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include <poise/extend/base/rng.hpp>
#include <poise/extend/engines/chain.hpp>
#include <poise/extend/engines/division.hpp>
#include <poise/extend/engines/engine.hpp>
#include <poise/extend/engines/tuner.hpp>
#include <poise/extend/learning/learning_objective.hpp>

namespace poise {

template <Target T, class K>
class TunerOf;
template <Target T, class K>
class SelfTuningOf;

/// A kernel that finds something out by itself while chains warm up (engines/tuner.hpp), from what their scratches
/// hold.
template <class K>
concept SelfTuningKernel = requires(K& kernel, typename K::Scratch& own, const typename K::Scratch& chain,
                                    typename K::Found& found, Saver& out) {
  kernel.start_tuning();
  kernel.forget_found(own);
  { kernel.is_tuning() } -> std::same_as<bool>;
  kernel.add_found(chain, found);
  kernel.freeze(found);
  kernel.archive(out);
};

template <Target T, class K>
class EngineOf final : public Engine, public StatesOf<T> {
 public:
  EngineOf(std::shared_ptr<const T> target, K kernel, const EngineOptions& options)
      : Engine(traits_of(*target, kernel, options)),
        target_(std::move(target)),
        kernel_(std::move(kernel)),
        seed_(options.seed),
        first_chain_(options.first_chain),
        reference_(options.reference),
        division_(options.division) {
    if constexpr (requires { kernel_.tabulate(*target_); }) kernel_.tabulate(*target_);
    for (std::size_t c = 0; c < options.starts.size(); ++c) {
      Rng rng = make_rng(options.seed, Stream::chain, options.first_chain + c);
      chains_.push_back(std::make_unique<Chain<T, K>>(*target_, options.starts[c], reference_, rng));
      place(c, options.starts[c], options.other_start);
    }
  }

  void advance(ChainGroup range, std::uint64_t steps) override {
    std::vector<Chain<T, K>*> group;
    for (std::size_t c = range.first; c < range.first + range.count; ++c) group.push_back(chains_[c].get());
    poise::advance<T, K>(kernel_, *target_, group, steps);
    for (Chain<T, K>* chain : group) after_advance(*chain);
  }

  void observe(ChainGroup group, const Observables& out) const override {
    for (std::size_t k = 0; k < group.count; ++k) {
      const Chain<T, K>& chain = *chains_[group.first + k];
      if (!out.log_prob.empty()) out.log_prob[k] = target_->log_prob(chain.state);
      if constexpr (requires(std::span<double> to) { target_->statistics(chain.state, to); }) {
        if (!out.statistics.empty()) target_->statistics(chain.state, row(out.statistics, k, traits_.statistics));
      }
      if (!out.distance.empty()) out.distance[k] = chain.present_distance(*target_);
      if (!out.accepted.empty()) out.accepted[k] = chain.accepted;
      if (!out.evals.empty()) out.evals[k] = chain.scratch.evals;
      if (!out.proposals.empty()) out.proposals[k] = proposals_of(chain);
      if (!out.levels.empty()) copy_levels(*target_, chain.state, row(out.levels, k, traits_.variables));
      if (!out.frozen.empty()) find_frozen(*target_, chain.state, row(out.frozen, k, traits_.variables));
      if (!out.empirical_marginals.empty()) {
        copy_marginals(chain, row(out.empirical_marginals, k, traits_.entries));
      }
    }
  }

  void restart(std::size_t c, std::span<const Value> levels) override {
    place(c, levels, {});
    start_empirical_marginals(*chains_[c]);
  }

  void exchange(std::size_t c, Engine& other) override {
    auto& there = dynamic_cast<EngineOf&>(other);
    typename T::State& mine = chains_[c]->state;
    typename T::State& theirs = there.chains_[c]->state;
    settle(*target_, *chains_[c]);
    settle(*there.target_, *there.chains_[c]);
    if constexpr (requires { target_->adopt(mine); }) {
      std::swap(mine, theirs);
      target_->adopt(mine);
      there.target_->adopt(theirs);
    } else {
      const std::vector<Value> x = levels_of(*target_, mine);
      mine = target_->make_state(levels_of(*target_, theirs));
      theirs = there.target_->make_state(x);
    }
    prepare(c);
    there.prepare(c);
  }

  [[nodiscard]] const typename T::State& state(std::size_t c) const override { return chains_[c]->state; }

  void start_marginals(ChainGroup group, bool rao_blackwell) override {
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      start_empirical_marginals(*chains_[c]);
      if (!rao_blackwell) continue;
      RaoBlackwell& kept = rao_blackwell_of(*chains_[c]);
      kept.sums.assign(target_->num_moves(), 0.0);
      kept.count = 0;
    }
  }

  void visit_marginals(ChainGroup group) override {
    if constexpr (!kRaoBlackwellises) {
      for (std::size_t c = group.first; c < group.first + group.count; ++c) {
        if (chains_[c]->rao_blackwell.sums.empty()) continue;
        add_conditionals(*target_, chains_[c]->state, chains_[c]->log_ratios, chains_[c]->rao_blackwell);
      }
    }
  }

  [[nodiscard]] RaoBlackwell rao_blackwell(std::size_t c) const override { return rao_blackwell_of(*chains_[c]); }

  void save_common(Saver& out) const override {
    if constexpr (TunableKernel<K, T>) save_function(out);
    if constexpr (SelfTuningKernel<K>) out(kernel_);
  }

  void load_common(Loader& in) override {
    if constexpr (TunableKernel<K, T>) load_function(in);
    if constexpr (SelfTuningKernel<K>) in(kernel_);
  }

  void save_chain(std::size_t c, Saver& out) const override {
    const Chain<T, K>& chain = *chains_[c];
    out(chain);
    if constexpr (Archivable<typename T::State, Saver>) {
      out(chain.state);
    } else {
      out(levels_of(*target_, chain.state));
    }
  }

  void load_chain(std::size_t c, Loader& in) override {
    Chain<T, K>& chain = *chains_[c];
    in(chain);
    if constexpr (Archivable<typename T::State, Loader>) {
      in(chain.state);
    } else {
      std::vector<Value> x(traits_.variables);
      in(x);
      chain.state = target_->make_state(x);
      // What a kernel has a copy of the state for, it takes anew too.
      if constexpr (requires { chain.scratch.proposed = chain.state; }) chain.scratch.proposed = chain.state;
    }
  }

 private:
  friend class TunerOf<T, K>;
  friend class SelfTuningOf<T, K>;

  /// Between chunks of this many steps a run looks whether it should stop. Where log p is computed by user code, a step
  /// takes as long as a call.
  static constexpr std::uint64_t kCallbackChunk = 64;
  static constexpr std::uint64_t kChunkUpdates = std::uint64_t{1} << 20;

  /// Whether the kernel averages conditional probabilities by itself.
  static constexpr bool kRaoBlackwellises = requires(typename K::Scratch & scratch) { scratch.rao_blackwell; };

  /// Whether user code computes log p for all chains in one call.
  static bool is_callback(const T& target) {
    if constexpr (requires { target.is_callback(); }) return target.is_callback();
    return MemoisingTarget<T>;
  }

  static EngineTraits traits_of(const T& target, const K& kernel, const EngineOptions& options) {
    EngineTraits traits = EngineTraits::of(target, options.starts.size());
    traits.steps_per_sweep = kernel.steps_per_sweep(target);
    const Index variables = std::max<Index>(1, traits.variables);
    traits.chunk = is_callback(target) ? kCallbackChunk
                                       : std::max<std::uint64_t>(1, kChunkUpdates * traits.steps_per_sweep / variables);
    // Kernels without a loop of their own move chains one by one, and so goes what they have in the cache.
    if constexpr (LoopingKernel<K, T>) traits.group = K::kChainsTogether;
    if constexpr (requires { K::kIndependent; }) traits.independent = K::kIndependent;
    return traits;
  }

  /// Puts a chain at a state of positive probability, the given one or another.
  void place(std::size_t c, std::span<const Value> levels, const decltype(EngineOptions::other_start)& other) {
    Chain<T, K>& chain = *chains_[c];
    std::function<std::vector<Value>(unsigned)> next;
    if (other) next = [&](unsigned attempt) { return other(c, attempt); };
    chain.state = make_start(*target_, levels, first_chain_ + c, next, chain.scratch.evals);
    prepare(c);
  }

  /// After a chain was put at another state.
  void prepare(std::size_t c) {
    Chain<T, K>& chain = *chains_[c];
    kernel_.prepare(*target_, chain.state, chain.scratch);
    if (chain.tracks_distance()) chain.distance = chain.measure_distance(*target_);
  }

  void start_empirical_marginals(Chain<T, K>& chain) {
    chain.empirical_marginals.reset(chain.steps);
    chain.settled = chain.steps;
  }

  void copy_marginals(const Chain<T, K>& chain, std::span<double> out) const {
    const EmpiricalMarginals& counted = chain.empirical_marginals;
    const double steps = std::max(1.0, static_cast<double>(chain.steps - counted.start()));
    Index first = 0;
    for (Index i = 0; i < target_->num_variables(); ++i) {
      const Value level = target_->level(chain.state, i);
      for (Index k = 1; k < target_->cardinality(i); ++k) {
        std::uint64_t time = counted.time(first + k - 1);
        if (k == level) time += counted.since_change(first, chain.steps);
        out[first + k - 1] = static_cast<double>(time) / steps;
      }
      first += target_->cardinality(i) - 1;
    }
  }

  static ProposalCounts proposals_of(const Chain<T, K>& chain) {
    if constexpr (requires { chain.scratch.proposals; }) {
      return chain.scratch.proposals;
    } else {
      return {static_cast<double>(chain.steps), chain.accepted};
    }
  }

  static auto& rao_blackwell_of(auto& chain) {
    if constexpr (kRaoBlackwellises) {
      return chain.scratch.rao_blackwell;
    } else {
      return chain.rao_blackwell;
    }
  }

  void after_advance(Chain<T, K>& chain) {
    // While the chains are still together: one by one, each would be a call of its own.
    if (is_callback(*target_)) static_cast<void>(target_->log_prob(chain.state));
    if constexpr (requires { chain.scratch.failure; }) {
      if (chain.scratch.failure != nullptr) throw std::runtime_error(chain.scratch.failure);
    }
    if (chain.steps - chain.settled > (std::uint64_t{1} << 30)) {
      // Before the 32-bit clock of the counts wraps.
      settle(*target_, chain);
    }
  }

  void save_function(Saver& out) const { out(BalancingFunction(kernel_.function()), is_tabulated()); }

  void load_function(Loader& in) {
    BalancingFunction function;
    bool tabulated = false;
    in(function, tabulated);
    kernel_ = kernel_.with_function(function);
    if constexpr (requires { kernel_.tabulate(*target_); }) {
      if (tabulated) kernel_.tabulate(*target_);
    }
  }

  [[nodiscard]] bool is_tabulated() const {
    if constexpr (requires { kernel_.is_tabulated(); }) {
      return kernel_.is_tabulated();
    } else {
      return false;
    }
  }

  std::shared_ptr<const T> target_;
  K kernel_;
  std::uint64_t seed_;
  std::uint64_t first_chain_;
  std::vector<Value> reference_;
  std::shared_ptr<const Division> division_;
  std::vector<std::unique_ptr<Chain<T, K>>> chains_;
};

template <Target T, class K>
class TunerOf final : public Tuner {
 public:
  explicit TunerOf(EngineOf<T, K>& engine) : engine_(engine), probes_(engine.chains_.size()) {
    for (std::size_t c = 0; c < engine.chains_.size(); ++c) {
      rngs_.push_back(make_rng(engine.seed_, Stream::learning, engine.first_chain_ + c));
    }
  }

  void set_function(const BalancingFunction& function, std::uint64_t steps) override {
    K& kernel = engine_.kernel_;
    kernel = kernel.with_function(function);
    // A table holds some ten weights per move; a step that needs none saves about three.
    if constexpr (requires { kernel.tabulate(*engine_.target_); }) {
      if (steps / 4 > engine_.target_->num_moves()) kernel.tabulate(*engine_.target_);
    }
  }

  void reweigh(std::size_t c) override {
    Chain<T, K>& chain = *engine_.chains_[c];
    engine_.kernel_.reweigh(*engine_.target_, chain.state, chain.scratch);
  }

  void observe(std::size_t c, const TransitionGradientOptions& options, TransitionGradient& out) override {
    probes_[c].reset();
    // Q_1 of the paper: now and then a state drawn uniformly takes the place of the chain's own.
    if (options.sampled_moves && rngs_[c].uniform() < LearningObjective::kUniformShare) probe_uniform_state(c);
    with_probe(c, [&](const auto& state, auto& scratch) {
      transition_gradient(engine_.kernel_, *engine_.target_, state, scratch, rngs_[c], options, out);
    });
  }

  void backward(std::size_t c, const TransitionGradient& observed, std::span<const double> coefficients,
                std::span<double> out) override {
    with_probe(c, [&](const auto& state, auto& scratch) {
      add_gradient(engine_.kernel_, *engine_.target_, state, scratch, observed, coefficients, out);
    });
  }

  void save_chain(std::size_t c, Saver& out) const override { out(rngs_[c]); }
  void load_chain(std::size_t c, Loader& in) override { in(rngs_[c]); }

 private:
  struct Probe {  // a state that learning looks at in place of the chain's
    typename T::State state;
    typename K::Scratch scratch;
  };

  void probe_uniform_state(std::size_t c) {
    const T& target = *engine_.target_;
    std::vector<Value> x(target.num_variables());
    for (Index i = 0; i < x.size(); ++i) x[i] = static_cast<Value>(rngs_[c].uniform() * target.cardinality(i));
    probes_[c] = std::make_unique<Probe>(Probe{target.make_state(x), typename K::Scratch(target)});
    if (target.log_prob(probes_[c]->state) == -std::numeric_limits<double>::infinity()) {
      probes_[c].reset();  // nothing can be learned where there is no probability
      return;
    }
    engine_.kernel_.prepare(target, probes_[c]->state, probes_[c]->scratch);
  }

  template <class Use>
  void with_probe(std::size_t c, Use&& use) {
    if (probes_[c]) {
      use(probes_[c]->state, probes_[c]->scratch);
    } else {
      use(engine_.chains_[c]->state, engine_.chains_[c]->scratch);
    }
  }

  EngineOf<T, K>& engine_;
  std::vector<Rng> rngs_;
  std::vector<std::unique_ptr<Probe>> probes_;
};

template <Target T, class K>
class SelfTuningOf final : public SelfTuning {
 public:
  explicit SelfTuningOf(EngineOf<T, K>& engine) : engine_(engine) {}

  void start() override {
    engine_.kernel_.start_tuning();
    for (const auto& chain : engine_.chains_) engine_.kernel_.forget_found(chain->scratch);
  }

  void freeze() override {
    if (!engine_.kernel_.is_tuning()) return;
    const Division* division = engine_.division_.get();
    typename K::Found found;
    const std::size_t own = division == nullptr ? engine_.chains_.size() : division->own().count;
    for (std::size_t c = 0; c < own; ++c) engine_.kernel_.add_found(engine_.chains_[c]->scratch, found);
    if (division != nullptr) {
      const auto all = division->collective().of_all(found);
      found = {};
      for (const typename K::Found& one : all) found += one;
    }
    engine_.kernel_.freeze(found);
  }

 private:
  EngineOf<T, K>& engine_;
};

/// Chains of one kernel on one target, with a tuner where the kernel can be tuned.
template <Target T, class K>
TunableEngine make_engine_of(std::shared_ptr<const T> target, K kernel, const EngineOptions& options) {
  auto engine = std::make_unique<EngineOf<T, K>>(std::move(target), std::move(kernel), options);
  std::unique_ptr<Tuner> tuner;
  if constexpr (TunableKernel<K, T>) tuner = std::make_unique<TunerOf<T, K>>(*engine);
  std::unique_ptr<SelfTuning> self_tuning;
  if constexpr (SelfTuningKernel<K>) self_tuning = std::make_unique<SelfTuningOf<T, K>>(*engine);
  return {std::move(engine), std::move(tuner), std::move(self_tuning)};
}

}  // namespace poise
