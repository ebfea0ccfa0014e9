/// Parallel tempering with an engine for every rung.
///
/// All ladders have their replicas of a rung in the engine of that rung, which is made from the model heated to the
/// rung's temperature by any sampler there is. A swap exchanges two states between neighbouring engines.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <poise/extend/engines/samplers.hpp>
#include <poise/extend/engines/tempered_engine.hpp>
#include <poise/extend/engines/tuner.hpp>
#include "base/fiber_scheduler.hpp"
#include "engines/common/tempering/heat.hpp"
#include "engines/common/tempering/rung_numbers.hpp"
#include "engines/cpu/tempering/temper.hpp"
#include "engines/rows.hpp"

namespace poise {

namespace {

/// One of so many steps adds to the estimates of normalising constants, which takes gains of all pairs.
constexpr std::uint64_t kBridge = 8;

/// Steps between two swaps: a sweep, as a rule.
std::uint64_t steps_between(const Sampler& inner, const Engine& engine) {
  return engine.traits().steps_per_sweep * (is_row<RbmGibbsRow>(inner) ? kSweepsOfRbm : 1);
}

/// What rung engines are made from.
struct RungSource {
  std::string name;  // of the model
  std::shared_ptr<const Heat> heat;
  Sampler inner;
  std::shared_ptr<FiberScheduler> fibers;  // where one call of user code serves all chains

  [[nodiscard]] TunableEngine make(double beta, const EngineOptions& options) const {
    Model heated;
    heated.name = name;
    heated.description = heat->at(beta);
    return make_engine(heated, inner, options);
  }
};

using States = std::vector<std::vector<Value>>;  // of all chains

class RungEngines final : public TemperedEngine {
 public:
  RungEngines(RungSource source, const EngineOptions& options, TunableEngine cold_engine)
      : TemperedEngine(traits_of(*cold_engine.engine), options, source.heat->log_hot()),
        source_(std::move(source)),
        options_(options),
        inner_steps_(steps_between(source_.inner, *cold_engine.engine)),
        past_(options.starts.size()) {
    // Where a start had no probability, the cold chain has found another one.
    options_.starts = states_of(*cold_engine.engine);
    options_.other_start = {};
    set_first_betas(first_betas(kFirstRungs));
    engines_.push_back(std::move(cold_engine));
    make_engines(first_starts());
  }

  [[nodiscard]] std::optional<TemperingReport> tempering() const override {
    std::optional<TemperingReport> report = TemperedEngine::tempering();
    if (std::isnan(source_.heat->log_hot())) {
      constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
      report->log_partition = report->log_partition_error = unknown;
      std::fill(report->log_partition_by_ladder.begin(), report->log_partition_by_ladder.end(), unknown);
    }
    return report;
  }

  std::vector<ChainGroup> share_out(unsigned threads) override {
    threads_ = threads;
    for (std::size_t k = 0; k + 1 < engines_.size(); ++k) engines_[k].engine->share_out(threads);
    return cold().share_out(threads);
  }

  void advance(ChainGroup group, std::uint64_t steps) override {
    for (std::uint64_t step = 0; step < steps; ++step) {
      for_each(engines_.size(), [&](std::size_t k) { engines_[k].engine->advance(group, inner_steps_); });
      swap(group);
    }
  }

  void observe(ChainGroup group, const Observables& out) const override {
    Observables of_state = out;
    of_state.accepted = {};  // proposals, which tuning looks at, are those of the cold rung
    of_state.evals = {};
    cold().observe(group, of_state);
    observe_sums(group, out);
  }

  void restart(std::size_t chain, std::span<const Value> levels) override {
    for (TunableEngine& rung : engines_) rung.engine->restart(chain, levels);
  }

  void start_marginals(ChainGroup group, bool rao_blackwell) override {
    cold().start_marginals(group, rao_blackwell);
    for (std::size_t c = group.first; c < group.first + group.count; ++c) restart_counts(c);
  }
  void visit_marginals(ChainGroup group) override { cold().visit_marginals(group); }
  [[nodiscard]] RaoBlackwell rao_blackwell(std::size_t chain) const override { return cold().rao_blackwell(chain); }

  void save_common(Saver& out) const override {
    save_ladder(out);
    out(generation_, learned_.has_value());
    if (learned_) out(learned_->function, learned_->steps);
    for (const TunableEngine& rung : engines_) rung.engine->save_common(out);
  }

  void load_common(Loader& in) override {
    load_ladder(in);
    bool learned = false;
    in(generation_, learned);
    learned_.reset();
    if (learned) {
      learned_ = Learned{};
      in(learned_->function, learned_->steps);
    }
    make_engines(first_starts());
    for (TunableEngine& rung : engines_) rung.engine->load_common(in);
  }

  void save_chain(std::size_t c, Saver& out) const override {
    out(rungs(c), past_[c]);
    for (const TunableEngine& rung : engines_) rung.engine->save_chain(c, out);
  }

  void load_chain(std::size_t c, Loader& in) override {
    in(rungs(c), past_[c]);
    for (TunableEngine& rung : engines_) rung.engine->load_chain(c, in);
  }

  // For the tuner.

  [[nodiscard]] std::size_t num_rungs() const { return engines_.size(); }
  [[nodiscard]] Tuner& tuner(std::size_t rung) { return *engines_[rung].tuner; }
  /// For all rungs, and those to come.
  void set_function(const BalancingFunction& function, std::uint64_t steps) {
    learned_ = {function, steps};
    for (TunableEngine& rung : engines_) rung.tuner->set_function(function, steps);
  }

 private:
  /// A balancing function that was learned, or is being learned.
  struct Learned {
    BalancingFunction function;
    std::uint64_t steps = 0;
  };

  [[nodiscard]] std::size_t round_rungs(std::size_t wanted) const override {
    return std::clamp<std::size_t>(wanted, 2, kMostRungs);
  }

  void remake_replicas(const std::vector<double>& before) override {
    std::vector<States> states;
    for (std::size_t k = 0; k < before.size(); ++k) states.push_back(states_of(*engines_[k].engine));
    std::vector<States> starts;
    for (const double beta : betas()) starts.push_back(states[nearest_rung(before, beta)]);
    std::vector<double> accepted(traits_.chains);
    std::vector<Evals> evals(traits_.chains);
    observe_sums({0, traits_.chains}, {.accepted = accepted, .evals = evals});
    for (std::size_t c = 0; c < traits_.chains; ++c) past_[c] = {accepted[c], evals[c]};
    ++generation_;
    make_engines(starts);
  }

  static EngineTraits traits_of(const Engine& cold) {
    EngineTraits traits = cold.traits();
    traits.chunk = std::max<std::uint64_t>(1, traits.chunk / traits.steps_per_sweep / kFirstRungs);
    traits.steps_per_sweep = 1;
    return traits;
  }

  [[nodiscard]] Engine& cold() { return *engines_.back().engine; }
  [[nodiscard]] const Engine& cold() const { return *engines_.back().engine; }

  [[nodiscard]] States states_of(const Engine& engine) const {
    const std::size_t n = traits_.variables;
    std::vector<Value> levels(traits_.chains * n);
    engine.observe({0, traits_.chains}, {.levels = levels});
    States states;
    for (const Value* x = levels.data(); states.size() < traits_.chains; x += n) states.emplace_back(x, x + n);
    return states;
  }
  /// Those of all rungs, at first.
  [[nodiscard]] std::vector<States> first_starts() const { return {betas().size(), options_.starts}; }

  /// Engines for all rungs, with chains at these states.
  void make_engines(const std::vector<States>& starts) {
    std::vector<TunableEngine> made(betas().size());
    for_each(made.size(), [&](std::size_t k) {
      EngineOptions options = options_;
      options.first_chain += stream_offset(made.size() - 1 - k, generation_);
      options.starts = starts[k];
      made[k] = source_.make(betas()[k], options);
      if (!learned_) return;
      made[k].tuner->set_function(learned_->function, learned_->steps);
      for (std::size_t c = 0; c < traits_.chains; ++c) made[k].tuner->reweigh(c);
    });
    engines_ = std::move(made);
    if (threads_ > 0) share_out(threads_);
  }

  /// Calls work(0) .. work(count - 1), as fibers where there are any.
  void for_each(std::size_t count, const std::function<void(std::size_t)>& work) const {
    if (source_.fibers) return source_.fibers->for_each(count, work);
    for (std::size_t k = 0; k < count; ++k) work(k);
  }

  void swap(ChainGroup group) {
    const std::size_t count = engines_.size();
    const std::uint64_t step = rungs(group.first).step;
    const bool bridge = step % kBridge == 0;
    // Gains of the replicas of each rung for the pair with the rung below, then for that with the rung above.
    std::vector<double> gains(2 * count * group.count, 0.0);
    const auto gains_of = [&](std::size_t rung, std::size_t pair) {
      return std::span<double>(gains).subspan((2 * rung + (pair == rung ? 1 : 0)) * group.count, group.count);
    };
    for (std::size_t pair = bridge ? 0 : step % 2; pair + 1 < count; pair += bridge ? 1 : 2) {
      const BetaRise rise{betas()[pair], betas()[pair + 1]};
      for (const std::size_t rung : {pair, pair + 1}) {
        source_.heat->gains({*engines_[rung].engine, betas()[rung], group}, rise, gains_of(rung, pair));
      }
    }
    std::vector<std::pair<std::size_t, std::size_t>> swapped;  // chain, pair
    for (std::size_t k = 0; k < group.count; ++k) {
      Rungs& mine = rungs(group.first + k);
      const auto gain = [&](std::size_t pair, std::size_t replica) {
        return gains_of(mine.ladder.rung_of(replica), pair)[k];
      };
      if (bridge) mine.ladder.bridge(gain);
      mine.ladder.swap(step, mine.rng, gain, [&](std::size_t pair) { swapped.emplace_back(group.first + k, pair); });
      ++mine.step;
    }
    for_each(swapped.size(), [&](std::size_t k) {
      const auto& [chain, pair] = swapped[k];
      engines_[pair].engine->exchange(chain, *engines_[pair + 1].engine);
    });
  }

  void observe_sums(ChainGroup group, const Observables& out) const {
    if (!out.accepted.empty()) {
      cold().observe(group, {.accepted = out.accepted});
      for (std::size_t k = 0; k < group.count; ++k) {
        out.accepted[k] = past_[group.first + k].accepted + out.accepted[k] / static_cast<double>(inner_steps_);
      }
    }
    if (out.evals.empty()) return;
    for (std::size_t k = 0; k < group.count; ++k) out.evals[k] = past_[group.first + k].evals;
    std::vector<Evals> of_rung(group.count);
    for (const TunableEngine& rung : engines_) {
      rung.engine->observe(group, {.evals = of_rung});
      for (std::size_t k = 0; k < group.count; ++k) out.evals[k] += of_rung[k];
    }
  }

  RungSource source_;
  EngineOptions options_;
  std::uint64_t inner_steps_ = 1;  // between two swaps
  std::vector<TunableEngine> engines_;
  std::vector<RungPast> past_;
  std::uint64_t generation_ = 0;  // how many times engines were made anew
  unsigned threads_ = 0;          // that chains were shared out to; 0: they were not
  std::optional<Learned> learned_;
};

/// Learns one function for all rungs.
class RungTuner final : public Tuner {
 public:
  explicit RungTuner(RungEngines& engine) : engine_(engine), looks_(engine.traits().chains, 0) {}

  void set_function(const BalancingFunction& function, std::uint64_t steps) override {
    engine_.set_function(function, steps);
  }
  void reweigh(std::size_t chain) override {
    for (std::size_t k = 0; k < engine_.num_rungs(); ++k) engine_.tuner(k).reweigh(chain);
  }
  void observe(std::size_t chain, const TransitionGradientOptions& options, TransitionGradient& out) override {
    ++looks_[chain];
    present(chain).observe(chain, options, out);
  }
  void backward(std::size_t chain, const TransitionGradient& observed, std::span<const double> coefficients,
                std::span<double> out) override {
    present(chain).backward(chain, observed, coefficients, out);
  }
  void save_chain(std::size_t c, Saver& out) const override {
    out(looks_[c]);
    for (std::size_t k = 0; k < engine_.num_rungs(); ++k) engine_.tuner(k).save_chain(c, out);
  }
  void load_chain(std::size_t c, Loader& in) override {
    in(looks_[c]);
    for (std::size_t k = 0; k < engine_.num_rungs(); ++k) engine_.tuner(k).load_chain(c, in);
  }

 private:
  /// Chains look at one rung after another, from the cold one down.
  [[nodiscard]] Tuner& present(std::size_t chain) {
    return engine_.tuner(engine_.num_rungs() - 1 - looks_[chain] % engine_.num_rungs());
  }

  RungEngines& engine_;
  std::vector<std::uint64_t> looks_;
};

}  // namespace

TunableEngine make_rung_engines(const Model& model, const Sampler& inner, const EngineOptions& options) {
  const RungSource source{model.name, make_heat(model), inner, model.fibers()};
  TunableEngine cold = source.make(1.0, options);
  const bool tunable = cold.tuner != nullptr;
  auto engine = std::make_unique<RungEngines>(source, options, std::move(cold));
  std::unique_ptr<Tuner> tuner;
  if (tunable) tuner = std::make_unique<RungTuner>(*engine);
  auto ladder = std::make_unique<LadderTuner>(*engine);
  return {.engine = std::move(engine), .tuner = std::move(tuner), .ladder = std::move(ladder)};
}

}  // namespace poise
