/// A run: warm-up, sampling, its state in bytes, its result.
#include <poise/run.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include <poise/extend/engines/samplers.hpp>
#include "engines/rows.hpp"
#include "run/run_core.hpp"
#include "run/start.hpp"

namespace poise {

namespace {

/// Warm-up takes at most this fraction of a limit in seconds.
constexpr double kWarmupFraction = 0.5;

}  // namespace

Run::Run(Model model, Sampler sampler, const RunOptions& options, RunHooks hooks)
    : core_(make_core(std::move(model), std::move(sampler), options, std::move(hooks))) {}

Run::Run(Model model, Sampler sampler, const RunOptions& options, TunableEngine chains, RunHooks hooks)
    : core_(std::make_unique<Core>(std::move(model), std::move(sampler), options, std::move(hooks))) {
  if (core_->division) throw std::logic_error("chains that were made by the caller cannot be divided among ranks");
  core_->take(std::move(chains));
}

Device device_of_run(const Model& model, const Sampler& sampler, const RunOptions& options) {
  if (options.device != Device::automatic) return options.device;
  std::string why;
  if (cuda_devices(why).empty()) return Device::cpu;
  if (!is_row<AutoRow>(sampler)) return faster_device(model, sampler, options.chains, options.threads);
  RunOptions there = options;
  there.device = Device::cuda;
  return faster_device(model, recommend(model, there, true).sampler, options.chains, options.threads);
}

Run::Run(std::unique_ptr<Core> core) : core_(std::move(core)) {}

Run::~Run() = default;

namespace {

/// Draws of a warm-up that are enough to be watched: the later half of half of them says something.
constexpr std::size_t kWatchedDraws = 64;

}  // namespace

std::unique_ptr<Run::Core> Run::make_core(Model model, Sampler sampler, const RunOptions& options, RunHooks hooks) {
  RunOptions resolved = options;
  resolved.device = device_of_run(model, sampler, options);
  std::optional<Advice> advice;
  if (is_row<AutoRow>(sampler)) {
    advice = recommend(model, resolved, options.warmup.value_or(kWatchedDraws) >= kWatchedDraws);
    advice->finds_thin = advice->finds_thin && options.thin == 0;
    // Ranks may not differ, and their clocks do.
    if (hooks.collective == nullptr || hooks.collective->size() == 1) fit_to_limit(model, resolved, *advice);
    sampler = advice->sampler;
    if (resolved.thin == 0) resolved.thin = advice->thin;
  }
  auto core = std::make_unique<Core>(std::move(model), std::move(sampler), resolved, std::move(hooks));
  core->asked = options;
  if (options.device == Device::automatic && resolved.device == Device::cuda) {
    core->notes.emplace_back("chains run on the GPU");
  }
  core->make_chains();
  if (!advice) return core;
  core->choice = Choice{advice->sampler.name, advice->reason, advice->thin};
  core->watch(*std::move(advice));
  return core;
}

void Run::Core::watch(Advice advice) {
  if (!advice.next && !advice.finds_thin) return;
  watcher.emplace(std::move(advice), model, options, made.engine->traits().steps_per_sweep, plan_of_options().steps);
}

void Run::replace_sampler() {
  const Advice::Replacement replacement = core_->watcher->replacement();
  std::optional<Advice> rest = core_->watcher->advice_for(replacement.sampler);
  const Clock::time_point started = core_->started;
  const double elapsed_before = core_->elapsed_before;
  const double warmup_seconds = core_->warmup_seconds;
  core_ = make_core(core_->model, replacement.sampler, core_->asked, core_->hooks);
  core_->choice = Choice{replacement.sampler.name, replacement.reason, 0};
  if (rest) core_->watch(*std::move(rest));
  core_->started = started;
  core_->elapsed_before = elapsed_before;
  core_->warmup_seconds = warmup_seconds;
  core_->agree(0.0);
}

void Run::warm_up() {
  core_->agree(0.0);
  while (!core_->sampling && !core_->stopped() && core_->have_warmup()) {
    if (core_->run_warmup(kWarmupFraction, *this)) return;
    replace_sampler();
  }
}

const WarmupOutcome& Run::warm_up(const WarmupPlan& plan) {
  core_->agree(0.0);
  core_->watcher.reset();
  core_->start_warmup(plan);
  core_->run_warmup(1.0, *this);
  core_->hand_on_stop();
  return core_->warmed;
}

void Run::advance(std::uint64_t steps) {
  core_->agree(0.0);
  if (core_->made.self_tuning) core_->made.self_tuning->freeze();  // a warm-up may have been stopped
  for (std::uint64_t done = 0; done < steps && !ended();) {
    const std::uint64_t chunk = std::min(steps - done, core_->length->steps(core_->seconds_left(1.0)));
    core_->round([&] {
      core_->chains->advance(chunk);
      return chunk;
    });
    done += chunk;
    if (core_->hooks.after_round) core_->hooks.after_round(*this);
    core_->hand_on_stop();
  }
}

void Run::sample(std::size_t draws) {
  core_->agree(0.0);
  Core& core = *core_;
  core.begin_sink();
  if (core.stopped()) return;  // a warm-up that was stopped can still be saved and resumed
  core.begin_sampling();
  core.phase_began = Clock::now();
  core.in_sample = true;
  const std::size_t most = std::numeric_limits<std::size_t>::max() - core.recorder->draws();
  const std::size_t wanted = core.recorder->draws() + std::min(draws, most);
  if (core.options.seconds <= 0.0) core.recorder->expect(wanted);
  // However short the time, there is a first draw.
  const auto over = [&] {
    return core.recorder->draws() == 0 ? core.stopped() : core.ended() || core.seconds_left(1.0) <= core.reserve();
  };
  while (core.recorder->draws() < wanted && !over()) {
    core.sampling_round(wanted - core.recorder->draws());
    core.between_rounds(wanted, *this);
  }
  core.sampling_seconds += seconds_since(core.phase_began);
  core.in_sample = false;
}

bool Run::ended() const { return core_->ended(); }
bool Run::stopped() const { return core_->stopped(); }
bool Run::is_broken() const { return core_->broken; }
const Model& Run::model() const { return core_->model; }
const Engine& Run::engine() const { return *core_->made.engine; }
const RunOptions& Run::options() const { return core_->options; }
Collective* Run::collective() const { return core_->hooks.collective; }
std::size_t Run::draws() const { return core_->recorder ? core_->recorder->draws() : 0; }
std::uint64_t Run::steps() const { return core_->steps; }

std::vector<Value> Run::states() const {
  std::vector<Value> levels(core_->options.chains * core_->model.layout.variables);
  observe_all(engine(), {0, core_->options.chains}, {.levels = levels});
  return levels;
}

void Run::restart(std::span<const Value> states) {
  core_->agree(0.0);
  const std::size_t n = core_->model.layout.variables;
  if (states.size() != core_->options.chains * n) {
    throw InputError(fmt::format("the states are {} values, expected {}: {} chains of {} variables", states.size(),
                                 core_->options.chains * n, core_->options.chains, n));
  }
  for (std::size_t k = 0; k < states.size(); ++k) {
    const auto i = static_cast<Index>(k % n);
    if (states[k] < core_->model.layout.cardinality(i)) continue;
    throw InputError(fmt::format("variable {} of chain {} is set to level {}, but it has only {} levels", i, k / n,
                                 states[k], core_->model.layout.cardinality(i)));
  }
  core_->chains->for_each_chain([&](std::size_t c) { core_->made.engine->restart(c, states.subspan(c * n, n)); });
}

std::vector<double> Run::log_prob() {
  std::vector<double> out(core_->options.chains);
  core_->chains->for_each_group([&](ChainGroup group) {
    engine().observe(group, {.log_prob = std::span(out).subspan(group.first, group.count)});
  });
  if (core_->division) core_->division->gather(std::span(out), {0, out.size()}, 1);
  for (double& log_prob : out) log_prob += core_->model.log_constant;
  return out;
}

RunResult Run::finish() {
  Core& core = *core_;
  const Engine& engine = *core.made.engine;
  RunResult result;
  core.fill_head(result);
  result.notes = core.notes;
  result.initial_steps = core.warmed.initial_steps;
  result.warmup_steps = core.warmed.steps;
  result.warmup_trace = core.warmed.trace;
  for (WarmupPoint& point : result.warmup_trace) point.log_prob += core.model.log_constant;
  result.objective = core.warmed.steps > 0 ? core.warmed.objective : std::numeric_limits<double>::quiet_NaN();
  result.warmup_seconds = core.warmup_seconds;
  result.sampling_seconds = core.sampling_seconds;
  if (Collective* ranks = collective(); ranks != nullptr) {
    result.warmup_seconds = ranks->of_root(result.warmup_seconds);
    result.sampling_seconds = ranks->of_root(result.sampling_seconds);
  }
  result.independent = engine.traits().independent;
  result.interrupted = core.stopped();
  result.options.draws = core.recorder->draws();
  result.acceptance_rate = core.recorder->mean_acceptance();
  result.warmup_evals = core.sampling ? core.warmup_evals : total_evals(engine);
  result.evals = total_evals(engine) - result.warmup_evals;
  core.note_what_is_held(result);
  result.best = core.best_draw();
  if (result.interrupted && result.options.draws == 0) {
    const std::vector<Value> levels = states();
    result.present.resize(levels.size());
    core.recorder->write_labels(levels, result.present.data());
  }
  result.trace = core.recorder->take();
  result.steps = static_cast<std::uint64_t>(result.options.draws) * core.options.chains * core.options.thin;
  result.updates =
      result.steps * std::max<std::uint64_t>(1, core.model.layout.variables / engine.traits().steps_per_sweep);
  core.share_batches();
  result.batches = std::move(core.batches);
  add_function(core.sampler, core.warmed.function, result);
  const std::vector<std::uint8_t> visited = add_marginals(core.model, engine, result);
  const std::vector<Value> last = core.kept.empty() ? states() : std::vector<Value>();
  add_checks(core.model, core.sampler, visited, core.checked_states(result, visited.size(), last),
             core.checked_states(result, 0, last), result);
  result.tempering = engine.tempering();
  if (result.tempering) {
    result.tempering->log_partition += core.model.log_constant;
    for (double& of_ladder : result.tempering->log_partition_by_ladder) of_ladder += core.model.log_constant;
  }
  return result;
}

std::string Run::save() const { return save(Draws::included); }
std::string Run::save_rest() const { return save(Draws::elsewhere); }

std::string Run::save(Draws draws) const {
  Core& core = *core_;
  if (core.broken) throw std::runtime_error("a run that was broken off inside a round cannot be saved");
  Saver out;
  const double elapsed = core.elapsed();
  const double in_phase = seconds_since(core.phase_began);
  const double warmup_seconds = core.warmup_seconds + (core.warmup ? in_phase : 0.0);
  const double sampling_seconds = core.sampling_seconds + (core.in_sample ? in_phase : 0.0);
  const bool for_all = collective() != nullptr && core.hooks.draws_to == Collective::To::all;
  out(core.choice.has_value());
  if (core.choice) out(*core.choice, core.watcher.has_value());
  if (core.watcher) out(*core.watcher);
  out(core.fingerprint(), core.sampling, core.steps, core.steps_in_draw, core.written, core.warmup_evals, elapsed,
      warmup_seconds, sampling_seconds, core.warmed);
  if (draws == Draws::elsewhere)
    out(core.save_chains([&](std::size_t c, Saver& of_chain) { save_position(c, of_chain); }));
  core.made.engine->save_common(out);
  if (draws == Draws::included) {
    out(*core.recorder);
  } else {
    core.recorder->archive_rest(out);
  }
  out(core.warmup.has_value());
  if (core.warmup) core.warmup->save(out);
  out(core.save_chains([&](std::size_t c, Saver& of_chain) {
    core.made.engine->save_chain(c, of_chain);
    if (!core.batches.empty()) of_chain(core.batches[c]);
    if (!core.kept.empty()) of_chain(core.kept[c]);
    of_chain(core.recorder->best_of(c));
    if (core.warmup) core.warmup->save_chain(c, of_chain);
  }));
  return for_all ? collective()->of_root(out.take()) : out.take();
}

void Run::save_position(std::size_t chain, Saver& out) const {
  std::vector<Value> levels(core_->model.layout.variables);
  double log_prob = 0.0;
  engine().observe({chain, 1}, {.log_prob = std::span(&log_prob, 1), .levels = levels});
  out(levels, log_prob);
}

void Run::load(std::string_view bytes) { load(bytes, Draws::included); }
void Run::load_rest(std::string_view bytes) { load(bytes, Draws::elsewhere); }

std::size_t Run::take_draws(const DrawBatch& block) {
  Recorder& recorder = *core_->recorder;
  Collective* const ranks = collective();
  if (ranks == nullptr) {
    recorder.take(block);
    return block.count;
  }
  const bool everywhere = core_->hooks.draws_to == Collective::To::all && recorder.holds_states();
  Saver out;
  if (ranks->is_root()) {
    out(block.count, block.monitors, block.acceptance_rate, block.n_steps);
    out(everywhere ? block.x : States());
  }
  const std::string bytes_of_root = ranks->of_root(out.take());
  if (ranks->is_root()) {
    recorder.take(block);
    return block.count;
  }
  Loader in(bytes_of_root);
  DrawBatch heard;
  in(heard.count, heard.monitors, heard.acceptance_rate, heard.n_steps, heard.x);
  recorder.take(heard);
  return heard.count;
}

void Run::load(std::string_view bytes, Draws draws) {
  Loader in(bytes);
  bool chosen = false;
  in(chosen);
  if (chosen) {
    Choice choice;
    bool watched = false;
    in(choice, watched);
    take_choice(choice, watched);
    if (watched) in(*core_->watcher);
  }
  Core& core = *core_;
  check_fingerprint(in);
  in(core.sampling, core.steps, core.steps_in_draw, core.written, core.warmup_evals, core.elapsed_before,
     core.warmup_seconds, core.sampling_seconds, core.warmed);
  core.started = Clock::now();
  std::vector<std::string> of_chains;
  const auto read_chains = [&] {
    in(of_chains);
    if (of_chains.size() != core.options.chains) throw std::runtime_error("the saved state is of other chains");
  };
  if (draws == Draws::elsewhere) {
    read_chains();
    check_same_model(of_chains);
  }
  core.made.engine->load_common(in);
  if (draws == Draws::included) {
    in(*core.recorder);
  } else {
    core.make_recorder();
    core.recorder->archive_rest(in);
  }
  bool warming = false;
  in(warming);
  core.warmup.reset();
  if (warming) {
    core.make_warmup({});
    core.warmup->load(in);
  }
  read_chains();
  const ChainGroup own = own_chains(*core.made.engine);
  for (std::size_t c = own.first; c < own.first + own.count; ++c) {
    Loader of_chain(of_chains[c]);
    core.made.engine->load_chain(c, of_chain);
    if (!core.batches.empty()) of_chain(core.batches[c]);
    if (!core.kept.empty()) of_chain(core.kept[c]);
    of_chain(core.recorder->best_of(c));
    if (core.warmup) core.warmup->load_chain(c, of_chain);
  }
  if (!core.sampling) return;
  core.made.tuner.reset();
  core.made.self_tuning.reset();
  core.made.ladder.reset();
}

void Run::check_fingerprint(Loader& in) const {
  std::string fingerprint;
  in(fingerprint);
  if (fingerprint == core_->fingerprint()) return;
  throw std::runtime_error(
      fmt::format("the saved state is of another run: '{}', expected '{}'", quote(fingerprint), core_->fingerprint()));
}

void Run::check_same_model(const std::vector<std::string>& positions_of_chains) {
  constexpr const char* sentence =
      "the model is not the one that the run was made with: its log p of the saved states is another";
  // Chains of the run's own sampler may draw some of the variables anew when they are put at a state; these do not.
  const ChainGroup own = own_chains(engine());
  if (own.count == 0) return;
  EngineOptions at;
  at.reference.resize(core_->model.layout.variables);
  std::vector<double> log_prob(own.count);
  for (std::size_t k = 0; k < own.count; ++k) {
    Loader in(positions_of_chains[own.first + k]);
    in(at.starts.emplace_back(), log_prob[k]);
    if (at.starts.back().size() != core_->model.layout.variables) throw InputError(sentence);
  }
  std::vector<double> now(own.count);
  try {
    make_engine(core_->model, parse_sampler(GibbsRow::name), at).engine->observe({0, own.count}, {.log_prob = now});
  } catch (const InputError&) {
    throw InputError(sentence);
  }
  for (std::size_t c = 0; c < now.size(); ++c) {
    if (!(std::abs(now[c] - log_prob[c]) <= 1e-9 * std::max(1.0, std::abs(log_prob[c])))) throw InputError(sentence);
  }
}

void Run::take_choice(const Choice& choice, bool watched) {
  if (!core_->choice) {
    throw std::runtime_error(
        "the saved state is of another run: its sampler was chosen by 'auto', and this one was named");
  }
  if (core_->choice->sampler != choice.sampler) {
    const Sampler sampler = parse_sampler(choice.sampler);
    std::optional<Advice> rest = core_->watcher ? core_->watcher->advice_for(sampler) : std::nullopt;
    core_ = make_core(core_->model, sampler, core_->asked, core_->hooks);
    if (rest) core_->watch(*std::move(rest));
  }
  if (watched && !core_->watcher)
    throw std::runtime_error("the saved state is of another run: its sampler was watched");
  if (!watched) core_->watcher.reset();
  core_->choice = choice;
  if (choice.thin > 0) core_->options.thin = choice.thin;
}

RunResult run(const Model& model, const Sampler& sampler, const RunOptions& options, const RunHooks& hooks) {
  Run run(model, sampler, options, hooks);
  run.warm_up();
  run.sample(options.seconds > 0.0 ? std::numeric_limits<std::size_t>::max() : options.draws);
  return run.finish();
}

}  // namespace poise
