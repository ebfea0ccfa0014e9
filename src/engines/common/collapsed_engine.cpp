/// From states of the core to those of the network, and marginals of both.
#include "engines/common/collapsed_engine.hpp"

#include <algorithm>
#include <utility>

#include <poise/extend/base/rng.hpp>
#include <poise/extend/engines/chain.hpp>
#include <poise/extend/engines/tuner.hpp>
#include "models/network/markov_network.hpp"

namespace poise {

namespace {

class CollapsedEngine final : public Engine {
 public:
  CollapsedEngine(std::shared_ptr<const Collapse> collapse, NetworkDescription whole, const EngineOptions& options,
                  std::unique_ptr<Engine> core)
      : Engine(traits_of(*whole.target, options, core.get())),
        collapse_(std::move(collapse)),
        target_(std::move(whole.target)),
        core_(std::move(core)),
        seed_(options.seed),
        first_chain_(options.first_chain),
        reference_(options.reference),
        chains_(options.starts.size()) {
    for (const Index i : collapse_->kept()) {
      for (Index k = 1; k < target_->cardinality(i); ++k) core_entries_.push_back(target_->first_move(i) + k - 1);
    }
    if (traits_.rounding.empty()) return;
    const std::vector<double> of_core = std::exchange(traits_.rounding, std::vector<double>(traits_.entries, 0.0));
    for (std::size_t k = 0; k < core_entries_.size(); ++k) traits_.rounding[core_entries_[k]] = of_core[k];
  }

  std::vector<ChainGroup> share_out(unsigned threads) override {
    return core_ ? core_->share_out(threads) : Engine::share_out(threads);
  }

  void advance(ChainGroup group, std::uint64_t steps) override {
    while (steps > 0) {
      const std::uint64_t since = chains_[group.first].step % kVisitEvery;
      const std::uint64_t part = std::min(steps, core_ ? kVisitEvery - since : 1);
      if (core_) core_->advance(group, part);
      for (std::size_t c = group.first; c < group.first + group.count; ++c) {
        chains_[c].step += part;
        if (!chains_[c].counts.empty() && (!core_ || since + part == kVisitEvery)) visit(c);
      }
      steps -= part;
    }
  }

  void observe(ChainGroup group, const Observables& out) const override {
    if (!out.accepted.empty() || !out.evals.empty()) observe_steps(group, out);
    if (!out.empirical_marginals.empty()) {
      for (std::size_t k = 0; k < group.count; ++k) {
        copy_counts(chains_[group.first + k], row(out.empirical_marginals, k, traits_.entries));
      }
    }
    for (std::size_t k = 0; k < group.count && !out.frozen.empty(); ++k) {
      observe_frozen(group.first + k, row(out.frozen, k, traits_.variables));
    }
    std::vector<Value> levels(traits_.variables);
    for (std::size_t k = 0; k < group.count && out.wants_state(); ++k) {
      draw(group.first + k, levels, {});
      observe_state(*target_, target_->make_state(levels), reference_, k, out);
    }
  }

  void restart(std::size_t c, std::span<const Value> levels) override {
    // What was summed out has no state of its own.
    std::vector<Value> kept;
    for (const Index i : collapse_->kept()) kept.push_back(levels[i]);
    if (core_) core_->restart(c, kept);
    std::fill(chains_[c].counts.begin(), chains_[c].counts.end(), std::uint64_t{0});
    std::fill(chains_[c].sums.sums.begin(), chains_[c].sums.sums.end(), 0.0);
    chains_[c].sums.count = 0;
  }

  void start_marginals(ChainGroup group, bool rao_blackwell) override {
    if (core_) core_->start_marginals(group, rao_blackwell);
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      Chain& chain = chains_[c];
      chain.counts.assign(traits_.entries, 0);
      chain.sums = {rao_blackwell ? std::vector<double>(traits_.entries, 0.0) : std::vector<double>(), 0};
    }
  }

  void visit_marginals(ChainGroup group) override {
    if (core_) core_->visit_marginals(group);
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      if (chains_[c].visited != chains_[c].step) visit(c);  // no draw goes without
    }
  }

  [[nodiscard]] RaoBlackwell rao_blackwell(std::size_t c) const override {
    RaoBlackwell out = chains_[c].sums;
    if (!core_ || out.sums.empty()) return out;
    const RaoBlackwell core = core_->rao_blackwell(c);
    // The core averages over all of its steps; shares of its count are what matters.
    const double scale = core.count == 0 ? 0.0 : static_cast<double>(out.count) / static_cast<double>(core.count);
    for (std::size_t k = 0; k < core_entries_.size(); ++k) out.sums[core_entries_[k]] = scale * core.sums[k];
    return out;
  }

  [[nodiscard]] std::optional<TemperingReport> tempering() const override {
    if (!core_) {
      TemperingReport exact;
      exact.betas = {1.0};
      exact.log_partition = collapse_->log_constant();
      return exact;
    }
    std::optional<TemperingReport> report = core_->tempering();
    if (!report) return report;
    report->log_partition += collapse_->log_constant();
    for (double& of_ladder : report->log_partition_by_ladder) of_ladder += collapse_->log_constant();
    return report;
  }

  void save_common(Saver& out) const override {
    if (core_) core_->save_common(out);
  }
  void load_common(Loader& in) override {
    if (core_) core_->load_common(in);
  }
  void save_chain(std::size_t c, Saver& out) const override {
    if (core_) core_->save_chain(c, out);
    out(chains_[c]);
  }
  void load_chain(std::size_t c, Loader& in) override {
    if (core_) core_->load_chain(c, in);
    in(chains_[c]);
  }

 private:
  /// Steps between two looks at what was summed out: these cost a few per cent of the steps, whose states differ
  /// little.
  static constexpr std::uint64_t kVisitEvery = 4;

  struct Chain {
    std::uint64_t step = 0;
    std::uint64_t visited = 0;          // the step of the last visit
    std::vector<std::uint64_t> counts;  // visits at each level above 0
    RaoBlackwell sums;                  // of what was summed out
    std::vector<Value> levels;          // room to draw in

    template <class A>
    void archive(A& archive) {
      archive(step, visited, counts, sums);
    }
  };

  static EngineTraits traits_of(const MarkovNetwork& target, const EngineOptions& options, const Engine* core) {
    EngineTraits traits;
    if (core != nullptr) traits = core->traits();
    traits.chains = options.starts.size();
    traits.variables = target.num_variables();
    traits.entries = target.num_moves();
    traits.statistics = target.statistic_names().size();
    traits.independent = core == nullptr;
    traits.gives_bits = false;
    return traits;
  }

  /// Counts the levels of a state, and adds up the conditionals of what was summed out.
  void visit(std::size_t c) {
    Chain& chain = chains_[c];
    chain.levels.resize(traits_.variables);
    draw(c, chain.levels, chain.sums.sums);
    for (Index i = 0; i < traits_.variables; ++i) {
      if (chain.levels[i] > 0 && target_->cardinality(i) > 1) {
        ++chain.counts[target_->first_move(i) + chain.levels[i] - 1];
      }
    }
    ++chain.sums.count;
    chain.visited = chain.step;
  }

  /// The state of all variables of a chain at its present step.
  void draw(std::size_t c, std::span<Value> levels, std::span<double> sums) const {
    std::vector<Value> core(collapse_->kept().size());
    if (core_) core_->observe({c, 1}, {.levels = core});
    // Every step of a chain has a key of its own.
    Rng rng = make_rng(seed_ ^ (chains_[c].step * 0x9E3779B97F4A7C15ULL), Stream::backward, first_chain_ + c);
    collapse_->draw(core, rng, levels, sums);
  }

  void observe_steps(ChainGroup group, const Observables& out) const {
    if (core_) return core_->observe(group, {.accepted = out.accepted, .evals = out.evals});
    for (std::size_t k = 0; k < group.count; ++k) {
      const std::uint64_t steps = chains_[group.first + k].step;
      if (!out.accepted.empty()) out.accepted[k] = static_cast<double>(steps);
      if (!out.evals.empty()) {
        out.evals[k] = {};
        out.evals[k].ratio = steps * traits_.entries;
      }
    }
  }

  static void copy_counts(const Chain& chain, std::span<double> to) {
    for (std::size_t k = 0; k < to.size(); ++k) {
      to[k] =
          chain.sums.count == 0 ? 0.0 : static_cast<double>(chain.counts[k]) / static_cast<double>(chain.sums.count);
    }
  }

  /// What the core cannot change; variables that were summed out are drawn anew with every look.
  void observe_frozen(std::size_t c, std::span<std::uint8_t> of_chain) const {
    for (Index i = 0; i < traits_.variables; ++i) of_chain[i] = target_->cardinality(i) == 1 ? 1 : 0;
    if (!core_) return;
    std::vector<std::uint8_t> of_core(collapse_->kept().size());
    core_->observe({c, 1}, {.frozen = of_core});
    for (std::size_t i = 0; i < of_core.size(); ++i) of_chain[collapse_->kept()[i]] = of_core[i];
  }

  std::shared_ptr<const Collapse> collapse_;
  std::shared_ptr<const MarkovNetwork> target_;
  std::unique_ptr<Engine> core_;  // empty where nothing is left
  std::uint64_t seed_;
  std::uint64_t first_chain_;
  std::vector<Value> reference_;
  std::vector<Index> core_entries_;  // among the network's, of each of the core's
  std::vector<Chain> chains_;
};

}  // namespace

TunableEngine make_collapsed_engine(
    const std::shared_ptr<const Collapse>& collapse, const NetworkDescription& whole, const EngineOptions& options,
    const std::function<TunableEngine(const NetworkDescription& core, const EngineOptions& options)>& make) {
  TunableEngine inside;
  if (!collapse->kept().empty()) {
    const auto network = std::make_shared<const Network>(collapse->core());
    EngineOptions core = options;
    const auto keep = [&](const std::vector<Value>& levels) {
      std::vector<Value> kept;
      for (const Index i : collapse->kept()) kept.push_back(levels[i]);
      return kept;
    };
    for (std::vector<Value>& start : core.starts) start = keep(start);
    core.reference = keep(options.reference);
    core.other_start = {};
    inside = make({network, std::make_shared<const MarkovNetwork>(*network)}, core);
  }
  inside.engine = std::make_unique<CollapsedEngine>(collapse, whole, options, std::move(inside.engine));
  return inside;
}

}  // namespace poise
