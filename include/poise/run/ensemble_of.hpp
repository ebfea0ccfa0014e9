/// The ensemble of one target and one kernel type.
#pragma once

#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include <poise/adapt/learning_objective.hpp>
#include <poise/adapt/transition_gradient_dense.hpp>
#include <poise/run/chain.hpp>
#include <poise/run/ensemble.hpp>

namespace poise {

inline constexpr const char* kNoStart =
    "the initial state has probability zero, and from there a chain cannot start: give it another (init)";

/// Streams above this one belong to learning, so that learning never shifts the numbers a chain samples with.
inline constexpr std::uint64_t kLearningStreams = std::uint64_t{1} << 63;

template <Target T, class K>
class EnsembleOf final : public Ensemble {
 public:
  EnsembleOf(std::shared_ptr<const T> target, K kernel, const EnsembleOptions& options)
      : target_(std::move(target)),
        kernel_(std::move(kernel)),
        reference_(options.reference),
        probes_(options.starts.size()) {
    if constexpr (requires { kernel_.tabulate(*target_); }) kernel_.tabulate(*target_);
    for (std::size_t c = 0; c < options.starts.size(); ++c) {
      const std::uint64_t number = options.first_chain + c;
      chains_.push_back(
          std::make_unique<Chain<T, K>>(*target_, options.starts[c], reference_, Rng(options.seed, number)));
      learning_rngs_.emplace_back(options.seed, kLearningStreams + number);
      chains_.back()->scratch.evals.target += 1;
      if (target_->log_prob(chains_.back()->state) == -std::numeric_limits<double>::infinity()) {
        throw InputError(kNoStart);
      }
      kernel_.prepare(*target_, chains_.back()->state, chains_.back()->scratch);
    }
  }

  [[nodiscard]] std::size_t num_chains() const override { return chains_.size(); }
  [[nodiscard]] Index num_variables() const override { return target_->num_variables(); }
  [[nodiscard]] std::uint64_t steps_per_sweep() const override { return kernel_.steps_per_sweep(*target_); }

  void advance(std::size_t first, std::size_t count, std::uint64_t steps) override {
    std::vector<Chain<T, K>*> group;
    for (std::size_t c = first; c < first + count; ++c) group.push_back(chains_[c].get());
    if constexpr (MemoisingTarget<T>) {
      for (Chain<T, K>* chain : group) {
        advance_waiting<T, K>(kernel_, *target_, *chain, steps);
        after_advance(*chain);
      }
      return;
    } else if constexpr (GroupKernel<K, T>) {
      advance_group<T, K>(kernel_, *target_, group, steps);
      for (Chain<T, K>* chain : group) after_advance(*chain);
      return;
    }
    Chain<T, K>* const* next = group.data();
    if constexpr (StagedKernel<K, T>) {
      // Of large models two at a time: four would push each other's weights out of the cache.
      for (; count >= 4 && !group[0]->scratch.tree.is_large(); count -= 4, next += 4) {
        advance_together<4>(kernel_, *target_, next, steps);
      }
      for (; count >= 2; count -= 2, next += 2) advance_together<2>(kernel_, *target_, next, steps);
    }
    for (; count >= 1; count -= 1, next += 1) poise::advance(kernel_, *target_, **next, steps);
    for (Chain<T, K>* chain : group) after_advance(*chain);
  }

  [[nodiscard]] double log_prob(std::size_t c) const override { return target_->log_prob(chains_[c]->state); }

  void levels(std::size_t c, std::span<Value> out) const override {
    for (Index i = 0; i < target_->num_variables(); ++i) out[i] = target_->level(chains_[c]->state, i);
  }

  [[nodiscard]] std::uint64_t chunk() const override {
    // Where log p is computed elsewhere, a step takes as long as a call.
    if constexpr (MemoisingTarget<T>) {
      return kWaitingChunk;
    } else {
      return Ensemble::chunk();
    }
  }

  /// Four chains hide each other's latency; kernels that look at a whole group in one matrix product fill its lanes.
  [[nodiscard]] std::size_t group_size() const override { return GroupKernel<K, T> ? 16 : 4; }

  void restart(std::size_t c, std::span<const Value> levels) override {
    Chain<T, K>& chain = *chains_[c];
    chain.state = target_->make_state(levels);
    chain.scratch.evals.target += 1;
    if (target_->log_prob(chain.state) == -std::numeric_limits<double>::infinity()) throw InputError(kNoStart);
    kernel_.prepare(*target_, chain.state, chain.scratch);
    chain.distance = chain.measure_distance(*target_);
    reset_marginals(c);
  }

  [[nodiscard]] std::int64_t distance(std::size_t c) const override {
    const Chain<T, K>& chain = *chains_[c];
    return chain.tracks_distance() && !Chain<T, K>::kCountsItself ? chain.distance : chain.measure_distance(*target_);
  }

  void statistics(std::size_t c, std::span<double> out) const override {
    if constexpr (requires { target_->statistics(chains_[c]->state, out); }) {
      target_->statistics(chains_[c]->state, out);
    }
  }

  [[nodiscard]] double accepted(std::size_t c) const override { return chains_[c]->accepted; }
  [[nodiscard]] Evals evals(std::size_t c) const override { return chains_[c]->scratch.evals; }

  void reset_marginals(std::size_t c) override {
    Chain<T, K>& chain = *chains_[c];
    if constexpr (Chain<T, K>::kCountsItself) {
      kernel_.reset_marginals(chain.scratch);
    } else {
      chain.empirical_marginals.reset(chain.steps);
      chain.settled = chain.steps;
    }
  }

  void add_marginals(std::size_t c, std::span<double> out) override {
    Chain<T, K>& chain = *chains_[c];
    if constexpr (Chain<T, K>::kCountsItself) {
      kernel_.add_marginals(*target_, chain.scratch, out);
    } else {
      settle(*target_, chain);
      const auto steps = static_cast<double>(chain.steps - chain.empirical_marginals.start());
      if (steps <= 0.0) return;
      for (Index k = 0; k < out.size(); ++k) out[k] += static_cast<double>(chain.empirical_marginals.time(k)) / steps;
    }
  }

  void reset_rao_blackwell(std::size_t c) override {
    RaoBlackwell& kept = rao_blackwell(*chains_[c]);
    kept.sums.assign(target_->num_moves(), 0.0);
    kept.count = 0;
  }

  void visit_rao_blackwell(std::size_t c) override {
    if constexpr (!kRaoBlackwellises) {
      Chain<T, K>& chain = *chains_[c];
      chain.log_ratios.resize(target_->num_moves());
      target_->log_ratios(chain.state, chain.log_ratios);
      Index first = 0;
      for (Index i = 0; i < target_->num_variables(); ++i) {
        const Index moves = target_->cardinality(i) - 1;
        if (moves > 0)
          chain.rao_blackwell.add(first, {chain.log_ratios.data() + first, moves}, target_->level(chain.state, i));
        first += moves;
      }
      ++chain.rao_blackwell.count;
    }
  }

  [[nodiscard]] const RaoBlackwell& rao_blackwell(std::size_t c) const override { return rao_blackwell(*chains_[c]); }

  void find_frozen(std::size_t c, std::span<std::uint8_t> out) const override {
    std::vector<double> ratios(target_->num_moves());
    target_->log_ratios(chains_[c]->state, ratios);
    Index move = 0;
    for (Index i = 0; i < target_->num_variables(); ++i) {
      out[i] = 1;
      for (Index k = 1; k < target_->cardinality(i); ++k) {
        if (ratios[move++] > -std::numeric_limits<double>::infinity()) out[i] = 0;
      }
    }
  }

  void set_function(const BalancingFunction& balance, std::uint64_t steps) override {
    if constexpr (requires { kernel_.ratios(); }) {
      kernel_ = K(balance, kernel_.ratios());
    } else if constexpr (std::constructible_from<K, BalancingFunction>) {
      kernel_ = K(balance);
      // A table holds some ten weights per move; a step that needs none saves about three.
      if constexpr (requires { kernel_.tabulate(*target_); }) {
        if (steps / 4 > target_->num_moves()) kernel_.tabulate(*target_);
      }
    } else {
      throw std::logic_error("this kernel takes no balancing function");
    }
  }

  void prepare(std::size_t c) override {
    if constexpr (requires { kernel_.reweigh(chains_[c]->scratch); }) {
      kernel_.reweigh(chains_[c]->scratch);
    } else {
      kernel_.prepare(*target_, chains_[c]->state, chains_[c]->scratch);
    }
  }

  void transition_gradient(std::size_t c, const TransitionGradientOptions& options, TransitionGradient& out) override {
    if constexpr (kLearns) {
      probes_[c].reset();
      // Q_1 of the paper: now and then a state drawn uniformly takes the place of the chain's own.
      if (options.sampled_moves && learning_rngs_[c].uniform() < LearningObjective::kUniformShare)
        probe_uniform_state(c);
      with_probe(c, [&](const auto& state, auto& scratch) {
        poise::transition_gradient(kernel_, *target_, state, scratch, learning_rngs_[c], options, out);
      });
    } else {
      throw std::logic_error("this kernel does not learn");
    }
  }

  void add_gradient(std::size_t c, const TransitionGradient& transition_gradient, std::span<const double> coefficients,
                    std::span<double> out) override {
    if constexpr (kLearns) {
      with_probe(c, [&](const auto& state, auto& scratch) {
        poise::add_gradient(kernel_, *target_, state, scratch, transition_gradient, coefficients, out);
      });
    } else {
      throw std::logic_error("this kernel does not learn");
    }
  }

 private:
  static constexpr std::uint64_t kWaitingChunk = 64;

  /// Whether the kernel averages conditional probabilities by itself.
  static constexpr bool kRaoBlackwellises = requires(typename K::Scratch & scratch) { scratch.rao_blackwell; };

  static auto& rao_blackwell(auto& chain) {
    if constexpr (kRaoBlackwellises) {
      return chain.scratch.rao_blackwell;
    } else {
      return chain.rao_blackwell;
    }
  }

  static constexpr bool kLearns = [] {
    if constexpr (std::same_as<K, InformedProposal<T>>) {
      return true;
    } else if constexpr (SparseTarget<T>) {
      return std::same_as<K, LocallyBalanced<T>>;
    } else {
      return false;
    }
  }();

  void after_advance(Chain<T, K>& chain) {
    // While the chains are still together: one by one, each would be a call of its own.
    if constexpr (MemoisingTarget<T>) static_cast<void>(target_->log_prob(chain.state));
    if constexpr (requires { chain.scratch.failure; }) {
      if (chain.scratch.failure != nullptr) throw std::runtime_error(chain.scratch.failure);
    }
    if constexpr (requires { kernel_.publish(*target_, chain.state, chain.scratch); }) {
      kernel_.publish(*target_, chain.state, chain.scratch);
    } else if (chain.steps - chain.settled > (std::uint64_t{1} << 30)) {
      settle(*target_, chain);  // before the 32-bit clock of the empirical_marginals wraps
    }
  }

  struct Probe {  // a state that learning looks at in place of the chain's
    typename T::State state;
    typename K::Scratch scratch;
  };

  void probe_uniform_state(std::size_t c) {
    std::vector<Value> x(target_->num_variables());
    for (Index i = 0; i < x.size(); ++i) {
      x[i] = static_cast<Value>(learning_rngs_[c].uniform() * target_->cardinality(i));
    }
    probes_[c] = std::make_unique<Probe>(Probe{target_->make_state(x), typename K::Scratch(*target_)});
    if (target_->log_prob(probes_[c]->state) == -std::numeric_limits<double>::infinity()) {
      probes_[c].reset();  // nothing can be learned where there is no probability
      return;
    }
    kernel_.prepare(*target_, probes_[c]->state, probes_[c]->scratch);
  }

  template <class Use>
  void with_probe(std::size_t c, Use&& use) {
    if (probes_[c]) {
      use(probes_[c]->state, probes_[c]->scratch);
    } else {
      use(chains_[c]->state, chains_[c]->scratch);
    }
  }

  std::shared_ptr<const T> target_;
  K kernel_;
  std::vector<Value> reference_;
  std::vector<std::unique_ptr<Chain<T, K>>> chains_;
  std::vector<Rng> learning_rngs_;
  std::vector<std::unique_ptr<Probe>> probes_;
};

}  // namespace poise
