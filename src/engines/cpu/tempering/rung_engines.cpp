/// Rungs that are moved on by engines of their own, and swaps between them.
#include "engines/cpu/tempering/rung_engines.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include <poise/extend/engines/samplers.hpp>
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

TunableEngine make_inner(const RungSource& source, double beta, const EngineOptions& options) {
  Model heated;
  heated.name = source.name;
  heated.description = source.heat->at(beta);
  return make_engine(heated, source.inner, options);
}

}  // namespace

TunableEngine make_rung_engines(const Model& model, const Sampler& inner, const EngineOptions& options) {
  const RungSource source{model.name, make_heat(model), inner, model.fibers()};
  TunableEngine cold = make_inner(source, 1.0, options);
  const bool tunable = cold.tuner != nullptr;
  auto engine = std::make_unique<RungEngines>(source, options, std::move(cold));
  std::unique_ptr<Tuner> tuner;
  if (tunable) tuner = std::make_unique<RungTuner>(*engine);
  auto ladder = std::make_unique<LadderTuner>(*engine);
  return {.engine = std::move(engine), .tuner = std::move(tuner), .ladder = std::move(ladder)};
}

EngineTraits RungEngines::traits_of(const Engine& cold) {
  EngineTraits traits = cold.traits();
  traits.chunk = std::max<std::uint64_t>(1, traits.chunk / traits.steps_per_sweep / kFirstRungs);
  traits.steps_per_sweep = 1;
  return traits;
}

RungEngines::RungEngines(RungSource source, const EngineOptions& options, TunableEngine cold_engine)
    : TemperedEngine(traits_of(*cold_engine.engine), options, source.heat->log_hot()),
      source_(std::move(source)),
      options_(options),
      inner_steps_(steps_between(source_.inner, *cold_engine.engine)),
      past_(options.starts.size()) {
  // Where a start had no probability, the cold chain has found another one.
  std::vector<Value> levels(traits_.chains * traits_.variables);
  cold_engine.engine->observe({0, traits_.chains}, {.levels = levels});
  for (std::size_t c = 0; c < traits_.chains; ++c) {
    const auto first = levels.begin() + static_cast<std::ptrdiff_t>(c * traits_.variables);
    options_.starts[c].assign(first, first + static_cast<std::ptrdiff_t>(traits_.variables));
  }
  options_.other_start = {};
  set_first_betas(first_betas(kFirstRungs));
  engines_.push_back(std::move(cold_engine));
  make_engines(first_starts());
}

std::vector<std::vector<std::vector<Value>>> RungEngines::first_starts() const {
  return {betas().size(), options_.starts};
}

void RungEngines::for_each(std::size_t count, const std::function<void(std::size_t)>& work) const {
  if (source_.fibers) {
    source_.fibers->for_each(count, work);
  } else {
    for (std::size_t k = 0; k < count; ++k) work(k);
  }
}

void RungEngines::make_engines(const std::vector<std::vector<std::vector<Value>>>& starts) {
  std::vector<TunableEngine> made(betas().size());
  for_each(made.size(), [&](std::size_t k) {
    EngineOptions options = options_;
    options.first_chain += stream_offset(made.size() - 1 - k, generation_);
    options.starts = starts[k];
    made[k] = make_inner(source_, betas()[k], options);
    if (!learned_) return;
    made[k].tuner->set_function(learned_->function, learned_->steps);
    for (std::size_t c = 0; c < traits_.chains; ++c) made[k].tuner->reweigh(c);
  });
  engines_ = std::move(made);
  if (threads_ > 0) share_out(threads_);
}

std::vector<ChainGroup> RungEngines::share_out(unsigned threads) {
  threads_ = threads;
  for (std::size_t k = 0; k + 1 < engines_.size(); ++k) engines_[k].engine->share_out(threads);
  return cold().share_out(threads);
}

std::size_t RungEngines::round_rungs(std::size_t wanted) const {
  return std::clamp<std::size_t>(wanted, 2, kMostRungs);
}

void RungEngines::remake_replicas(const std::vector<double>& before) {
  const std::size_t n = traits_.variables;
  std::vector<std::vector<std::vector<Value>>> states(before.size());
  std::vector<Value> levels(traits_.chains * n);
  for (std::size_t k = 0; k < before.size(); ++k) {
    engines_[k].engine->observe({0, traits_.chains}, {.levels = levels});
    for (std::size_t c = 0; c < traits_.chains; ++c) {
      const auto first = levels.begin() + static_cast<std::ptrdiff_t>(c * n);
      states[k].emplace_back(first, first + static_cast<std::ptrdiff_t>(n));
    }
  }
  std::vector<std::vector<std::vector<Value>>> starts;
  for (const double beta : betas()) starts.push_back(states[nearest_rung(before, beta)]);
  std::vector<double> accepted(traits_.chains);
  std::vector<Evals> evals(traits_.chains);
  observe_sums({0, traits_.chains}, {.accepted = accepted, .evals = evals});
  for (std::size_t c = 0; c < traits_.chains; ++c) past_[c] = {accepted[c], evals[c]};
  ++generation_;
  make_engines(starts);
}

void RungEngines::set_function(const BalancingFunction& function, std::uint64_t steps) {
  learned_ = {function, steps};
  for (TunableEngine& rung : engines_) rung.tuner->set_function(function, steps);
}

void RungEngines::advance(ChainGroup group, std::uint64_t steps) {
  for (std::uint64_t step = 0; step < steps; ++step) {
    for_each(engines_.size(), [&](std::size_t k) { engines_[k].engine->advance(group, inner_steps_); });
    swap(group);
  }
}

void RungEngines::swap(ChainGroup group) {
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

void RungEngines::observe(ChainGroup group, const Observables& out) const {
  Observables of_state = out;
  of_state.accepted = {};  // proposals, which tuning looks at, are those of the cold rung
  of_state.evals = {};
  cold().observe(group, of_state);
  observe_sums(group, out);
}

void RungEngines::observe_sums(ChainGroup group, const Observables& out) const {
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

void RungEngines::restart(std::size_t chain, std::span<const Value> levels) {
  for (TunableEngine& rung : engines_) rung.engine->restart(chain, levels);
}

void RungEngines::start_marginals(ChainGroup group, bool rao_blackwell) {
  cold().start_marginals(group, rao_blackwell);
  for (std::size_t c = group.first; c < group.first + group.count; ++c) restart_counts(c);
}

std::optional<TemperingReport> RungEngines::tempering() const {
  std::optional<TemperingReport> report = TemperedEngine::tempering();
  if (std::isnan(source_.heat->log_hot())) {
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    report->log_partition = report->log_partition_error = unknown;
    std::fill(report->log_partition_by_ladder.begin(), report->log_partition_by_ladder.end(), unknown);
  }
  return report;
}

void RungEngines::save_common(Saver& out) const {
  save_ladder(out);
  out(generation_, learned_.has_value());
  if (learned_) out(learned_->function, learned_->steps);
  for (const TunableEngine& rung : engines_) rung.engine->save_common(out);
}

void RungEngines::load_common(Loader& in) {
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

void RungEngines::save_chain(std::size_t c, Saver& out) const {
  out(rungs(c), past_[c]);
  for (const TunableEngine& rung : engines_) rung.engine->save_chain(c, out);
}

void RungEngines::load_chain(std::size_t c, Loader& in) {
  in(rungs(c), past_[c]);
  for (TunableEngine& rung : engines_) rung.engine->load_chain(c, in);
}

void RungTuner::reweigh(std::size_t chain) {
  for (std::size_t k = 0; k < engine_.num_rungs(); ++k) engine_.tuner(k).reweigh(chain);
}

void RungTuner::observe(std::size_t chain, const TransitionGradientOptions& options, TransitionGradient& out) {
  ++looks_[chain];
  present(chain).observe(chain, options, out);
}

void RungTuner::backward(std::size_t chain, const TransitionGradient& observed, std::span<const double> coefficients,
                         std::span<double> out) {
  present(chain).backward(chain, observed, coefficients, out);
}

void RungTuner::save_chain(std::size_t c, Saver& out) const {
  out(looks_[c]);
  for (std::size_t k = 0; k < engine_.num_rungs(); ++k) engine_.tuner(k).save_chain(c, out);
}

void RungTuner::load_chain(std::size_t c, Loader& in) {
  in(looks_[c]);
  for (std::size_t k = 0; k < engine_.num_rungs(); ++k) engine_.tuner(k).load_chain(c, in);
}

}  // namespace poise
