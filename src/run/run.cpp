/// A run: warm-up, sampling, its state in bytes, its result.
#include <poise/run.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include <poise/extend/engines/samplers.hpp>
#include "engines/rows.hpp"
#include "run/run_parts.hpp"
#include "run/start.hpp"

namespace poise {

namespace {

/// Of a limit in seconds, warm-up takes this fraction at most.
constexpr double kWarmupFraction = 0.5;

}  // namespace

Run::Run(Model model, Sampler sampler, const RunOptions& options, RunHooks hooks)
    : parts_(make_parts(std::move(model), std::move(sampler), options, std::move(hooks))) {}

Run::Run(Model model, Sampler sampler, const RunOptions& options, TunableEngine chains, RunHooks hooks)
    : parts_(std::make_unique<Parts>(std::move(model), std::move(sampler), options, std::move(hooks))) {
  if (parts_->division) throw std::logic_error("chains that were made by the caller cannot be divided among ranks");
  parts_->take(std::move(chains));
}

namespace {

/// On a GPU `auto` is Gibbs, of an RBM that of its layers: there is no other sampler that runs on all models there.
Sampler sampler_on_gpu(const Model& model, const Sampler& sampler) {
  if (!is_row<AutoRow>(sampler)) return sampler;
  const bool is_rbm = std::holds_alternative<std::shared_ptr<const Rbm>>(model.description);
  return parse_sampler(is_rbm ? RbmGibbsRow::name : GibbsRow::name);
}

}  // namespace

Device device_of_run(const Model& model, const Sampler& sampler, const RunOptions& options) {
  if (options.device != Device::automatic) return options.device;
  return faster_device(model, sampler_on_gpu(model, sampler), options.chains, options.threads);
}

void Run::choose_device(Parts& parts) {
  RunOptions& options = parts.options;
  const bool was_automatic = options.device == Device::automatic;
  options.device = device_of_run(parts.model, parts.sampler, options);
  if (options.device != Device::cuda) return;
  parts.sampler = sampler_on_gpu(parts.model, parts.sampler);
  if (was_automatic) parts.notes.push_back(fmt::format("chains run on the GPU, by {}", parts.sampler.name));
}

Run::Run(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Run::~Run() = default;

std::unique_ptr<Run::Parts> Run::make_parts(Model model, Sampler sampler, const RunOptions& options, RunHooks hooks) {
  auto parts = std::make_unique<Parts>(std::move(model), std::move(sampler), options, std::move(hooks));
  choose_device(*parts);
  if (is_row<AutoRow>(parts->sampler)) {
    parts->race = std::make_shared<Race>(parts->model, parts->options);
    parts->sampler = parts->race->first();
  }
  parts->make_chains();
  if (parts->race && parts->race->is_walkover()) {
    parts->choice = parts->race->run(nullptr, {}).choice;
    parts->race.reset();
  }
  return parts;
}

void Run::decide() {
  parts_->agree(0.0);
  if (!parts_->race) return;
  const Clock::time_point began = Clock::now();
  const Clock::time_point started = parts_->started;
  const double elapsed_before = parts_->elapsed_before;
  const RunHooks hooks = parts_->hooks;
  const Parts::Agreed agreed = parts_->agreed;
  const Model model = parts_->model;
  const std::shared_ptr<Race> race = std::move(parts_->race);
  Race::View view{hooks.progress, hooks.stop, {}, hooks.collective, parts_->agreed.listens};
  if (hooks.after_round) view.after_round = [&] { hooks.after_round(*this); };
  auto first = std::unique_ptr<Run>(new Run(stand_in(race)));
  std::swap(parts_, first->parts_);
  first->parts_->hooks.after_round = nullptr;
  if (hooks.after_round) first->parts_->hooks.after_round = [&](const Run&) { hooks.after_round(*this); };
  Race::Outcome outcome = race->run(std::move(first), view);
  if (!outcome.choice && !outcome.run) {
    // A pilot that was stopped goes on from there.
    std::string state = race->save();
    if (hooks.collective != nullptr) state = hooks.collective->of_root(state);
    parts_ = make_parts(model, parse_sampler(AutoRow::name), race->options(), hooks);
    if (parts_->race) parts_->race->load(std::move(state));
  } else if (outcome.run) {
    parts_ = std::move(outcome.run->parts_);
    parts_->broken = !outcome.choice;
  } else {
    parts_ = make_parts(model, parse_sampler(outcome.choice->sampler), race->options(), hooks);
  }
  parts_->choice = std::move(outcome.choice);
  parts_->hooks = hooks;
  parts_->options.memory = race->options().memory;
  parts_->agreed.has_sink = agreed.has_sink;
  parts_->agreed.listens = agreed.listens;
  parts_->agreed.memory = agreed.memory;
  parts_->make_recorder();
  parts_->reporter = ProgressReporter(hooks.progress);
  parts_->started = started;
  parts_->elapsed_before = elapsed_before;
  parts_->phase_began = began;
}

/// What the run is while its sampler is being chosen: it has no chains, but can be asked for its options and saved.
std::unique_ptr<Run::Parts> Run::stand_in(const std::shared_ptr<Race>& race) const {
  auto parts = std::make_unique<Parts>(parts_->model, parts_->sampler, race->options(), parts_->hooks);
  parts->options.thin = parts_->options.thin;
  parts->race = race;
  parts->started = parts_->started;
  parts->elapsed_before = parts_->elapsed_before;
  return parts;
}

void Run::warm_up() {
  decide();
  if (parts_->sampling || parts_->stopped() || !parts_->have_warmup()) return;
  parts_->run_warmup(kWarmupFraction, *this);
}

void Run::begin_warm_up(std::uint64_t steps) {
  decide();
  if (parts_->sampling || parts_->stopped() || !parts_->have_warmup()) return;
  Warmup& warmup = *parts_->warmup;
  const std::uint64_t end =
      warmup.steps() + std::min(steps, std::numeric_limits<std::uint64_t>::max() - warmup.steps());
  while (!warmup.done() && warmup.steps() < end && !parts_->stopped()) {
    const std::uint64_t most = std::min(end - warmup.steps(), parts_->length->steps(0.0));
    parts_->round([&] { return warmup.round(most); });
    if (parts_->hooks.after_round && !parts_->broken) parts_->hooks.after_round(*this);
  }
}

const WarmupOutcome& Run::warm_up(const WarmupPlan& plan) {
  decide();
  parts_->start_warmup(plan);
  parts_->run_warmup(1.0, *this);
  parts_->hand_on_stop();
  return parts_->warmed;
}

void Run::advance(std::uint64_t steps) {
  decide();
  if (parts_->made.self_tuning) parts_->made.self_tuning->freeze();  // a warm-up may have been stopped
  for (std::uint64_t done = 0; done < steps && !ended();) {
    const std::uint64_t part = std::min(steps - done, parts_->length->steps(parts_->seconds_left(1.0)));
    parts_->round([&] {
      parts_->chains->advance(part);
      return part;
    });
    done += part;
    if (parts_->hooks.after_round) parts_->hooks.after_round(*this);
    parts_->hand_on_stop();
  }
}

void Run::sample(std::size_t draws) {
  decide();
  Parts& parts = *parts_;
  parts.begin_sink();
  if (parts.stopped()) return;  // a warm-up that was stopped can still be saved and go on
  parts.begin_sampling();
  parts.phase_began = Clock::now();
  parts.in_sample = true;
  const std::size_t most = std::numeric_limits<std::size_t>::max() - parts.recorder->draws();
  const std::size_t wanted = parts.recorder->draws() + std::min(draws, most);
  if (parts.options.seconds <= 0.0) parts.recorder->expect(wanted);
  // However short the time, there is a first draw.
  const auto go_on = [&] { return !(parts.recorder->draws() == 0 ? parts.stopped() : parts.ended()); };
  while (parts.recorder->draws() < wanted && go_on()) {
    parts.sampling_round(wanted - parts.recorder->draws());
    parts.between_rounds(wanted, *this);
  }
  parts.sampling_seconds += seconds_since(parts.phase_began);
  parts.in_sample = false;
}

bool Run::ended() const { return parts_->ended(); }
bool Run::stopped() const { return parts_->stopped(); }
bool Run::is_broken() const { return parts_->broken; }
const Model& Run::model() const { return parts_->model; }
const Engine& Run::engine() const { return *parts_->made.engine; }
const RunOptions& Run::options() const { return parts_->options; }
Collective* Run::collective() const { return parts_->hooks.collective; }
std::size_t Run::draws() const { return parts_->recorder ? parts_->recorder->draws() : 0; }
std::uint64_t Run::steps() const { return parts_->steps; }

std::vector<Value> Run::states() const {
  std::vector<Value> levels(parts_->options.chains * parts_->model.layout.variables);
  observe_all(engine(), {0, parts_->options.chains}, {.levels = levels});
  return levels;
}

void Run::restart(std::span<const Value> states) {
  decide();
  const std::size_t n = parts_->model.layout.variables;
  if (states.size() != parts_->options.chains * n) {
    throw InputError(fmt::format("the states are {} values, expected {}: {} chains of {} variables", states.size(),
                                 parts_->options.chains * n, parts_->options.chains, n));
  }
  for (std::size_t k = 0; k < states.size(); ++k) {
    const auto i = static_cast<Index>(k % n);
    if (states[k] < parts_->model.layout.cardinality(i)) continue;
    throw InputError(fmt::format("variable {} of chain {} is set to level {}, but it has only {} levels", i, k / n,
                                 states[k], parts_->model.layout.cardinality(i)));
  }
  parts_->chains->for_each_chain([&](std::size_t c) { parts_->made.engine->restart(c, states.subspan(c * n, n)); });
}

std::vector<double> Run::log_prob() {
  std::vector<double> out(parts_->options.chains);
  parts_->chains->for_each_group([&](ChainGroup group) {
    engine().observe(group, {.log_prob = std::span(out).subspan(group.first, group.count)});
  });
  if (parts_->division) parts_->division->gather(std::span(out), {0, out.size()}, 1);
  return out;
}

RunResult Run::finish() {
  Parts& parts = *parts_;
  const Engine& engine = *parts.made.engine;
  RunResult result;
  parts.fill_head(result);
  result.notes = parts.notes;
  result.initial_steps = parts.warmed.initial_steps;
  result.warmup_steps = parts.warmed.steps;
  result.warmup_trace = parts.warmed.trace;
  result.objective = parts.warmed.steps > 0 ? parts.warmed.objective : std::numeric_limits<double>::quiet_NaN();
  result.warmup_seconds = parts.warmup_seconds;
  result.sampling_seconds = parts.sampling_seconds;
  if (Collective* ranks = collective(); ranks != nullptr) {
    result.warmup_seconds = ranks->of_root(result.warmup_seconds);
    result.sampling_seconds = ranks->of_root(result.sampling_seconds);
  }
  result.interrupted = parts.stopped();
  result.options.draws = parts.recorder->draws();
  result.acceptance_rate = parts.recorder->mean_acceptance();
  result.warmup_evals = parts.sampling ? parts.warmup_evals : total_evals(engine);
  result.evals = total_evals(engine) - result.warmup_evals;
  parts.note_what_is_held(result);
  if (!parts.model.objective.empty() && parts.recorder->draws() > 0) {
    const Recorder::Best best = parts.recorder->best_objective();
    result.notes.push_back(
        fmt::format("the best {} among the draws is {:.10g} (chain {}, draw {}, both counted from 0)",
                    parts.model.objective, best.value, best.chain, best.draw));
  }
  result.trace = parts.recorder->take();
  result.steps = static_cast<std::uint64_t>(result.options.draws) * parts.options.chains * parts.options.thin;
  result.updates =
      result.steps * std::max<std::uint64_t>(1, parts.model.layout.variables / engine.traits().steps_per_sweep);
  parts.share_batches();
  result.batches = std::move(parts.batches);
  add_function(parts.sampler, parts.warmed.function, result);
  add_marginals(parts.model, engine, result);
  result.tempering = engine.tempering();
  return result;
}

std::string Run::save() const { return save(Draws::included); }
std::string Run::save_rest() const { return save(Draws::elsewhere); }

std::string Run::save(Draws draws) const {
  Parts& parts = *parts_;
  if (parts.broken) throw std::runtime_error("a run that was broken off inside a round cannot be saved");
  Saver out;
  const double elapsed = parts.elapsed();
  const double in_phase = seconds_since(parts.phase_began);
  const double warmup_seconds = parts.warmup_seconds + (parts.warmup ? in_phase : 0.0);
  const double sampling_seconds = parts.sampling_seconds + (parts.in_sample ? in_phase : 0.0);
  const bool for_all = collective() != nullptr && parts.hooks.draws_to == Collective::To::all;
  const std::string pilot = parts.race ? parts.race->save() : "";
  out(parts.choice.has_value(), !pilot.empty());
  if (!pilot.empty()) {
    out(parts.fingerprint(), elapsed, pilot);
    return for_all ? collective()->of_root(out.take()) : out.take();
  }
  if (parts.choice) out(*parts.choice);
  out(parts.fingerprint(), parts.sampling, parts.steps, parts.steps_in_draw, parts.written, parts.warmup_evals, elapsed,
      warmup_seconds, sampling_seconds, parts.warmed);
  if (draws == Draws::elsewhere)
    out(parts.save_chains([&](std::size_t c, Saver& of_chain) { save_place(c, of_chain); }));
  parts.made.engine->save_common(out);
  if (draws == Draws::included) {
    out(*parts.recorder);
  } else {
    parts.recorder->archive_rest(out);
  }
  out(parts.warmup.has_value());
  if (parts.warmup) parts.warmup->save(out);
  out(parts.save_chains([&](std::size_t c, Saver& of_chain) {
    parts.made.engine->save_chain(c, of_chain);
    if (!parts.batches.empty()) of_chain(parts.batches[c]);
    if (parts.warmup) parts.warmup->save_chain(c, of_chain);
  }));
  return for_all ? collective()->of_root(out.take()) : out.take();
}

void Run::save_place(std::size_t chain, Saver& out) const {
  std::vector<Value> levels(parts_->model.layout.variables);
  double log_prob = 0.0;
  engine().observe({chain, 1}, {.log_prob = std::span(&log_prob, 1), .levels = levels});
  out(levels, log_prob);
}

void Run::load(std::string_view bytes) { load(bytes, Draws::included); }
void Run::load_rest(std::string_view bytes) { load(bytes, Draws::elsewhere); }

std::size_t Run::take_draws(const DrawBlock& block) {
  Recorder& recorder = *parts_->recorder;
  Collective* const ranks = collective();
  if (ranks == nullptr) {
    recorder.take(block);
    return block.count;
  }
  const bool everywhere = parts_->hooks.draws_to == Collective::To::all && recorder.holds_states();
  Saver out;
  if (ranks->is_root()) {
    out(block.count, block.monitors, block.acceptance_rate, block.n_steps);
    out(everywhere ? block.x : std::vector<std::int8_t>());
  }
  const std::string bytes_of_root = ranks->of_root(out.take());
  if (ranks->is_root()) {
    recorder.take(block);
    return block.count;
  }
  Loader in(bytes_of_root);
  DrawBlock heard;
  in(heard.count, heard.monitors, heard.acceptance_rate, heard.n_steps, heard.x);
  recorder.take(heard);
  return heard.count;
}

void Run::load(std::string_view bytes, Draws draws) {
  Loader in(bytes);
  bool chosen = false;
  bool in_pilot = false;
  in(chosen, in_pilot);
  if (in_pilot) return load_pilot(in);
  if (chosen) {
    Choice choice;
    in(choice);
    take_choice(choice);
  }
  Parts& parts = *parts_;
  check_fingerprint(in);
  in(parts.sampling, parts.steps, parts.steps_in_draw, parts.written, parts.warmup_evals, parts.elapsed_before,
     parts.warmup_seconds, parts.sampling_seconds, parts.warmed);
  parts.started = Clock::now();
  std::vector<std::string> of_chains;
  const auto read_chains = [&] {
    in(of_chains);
    if (of_chains.size() != parts.options.chains) throw std::runtime_error("the saved state is of other chains");
  };
  if (draws == Draws::elsewhere) {
    read_chains();
    check_same_model(of_chains);
  }
  parts.made.engine->load_common(in);
  if (draws == Draws::included) {
    in(*parts.recorder);
  } else {
    parts.make_recorder();
    parts.recorder->archive_rest(in);
  }
  bool warming = false;
  in(warming);
  parts.warmup.reset();
  if (warming) {
    parts.make_warmup({});
    parts.warmup->load(in);
  }
  read_chains();
  const ChainGroup own = own_chains(*parts.made.engine);
  for (std::size_t c = own.first; c < own.first + own.count; ++c) {
    Loader of_chain(of_chains[c]);
    parts.made.engine->load_chain(c, of_chain);
    if (!parts.batches.empty()) of_chain(parts.batches[c]);
    if (parts.warmup) parts.warmup->load_chain(c, of_chain);
  }
  if (!parts.sampling) return;
  parts.made.tuner.reset();
  parts.made.self_tuning.reset();
  parts.made.ladder.reset();
}

void Run::check_fingerprint(Loader& in) const {
  std::string fingerprint;
  in(fingerprint);
  if (fingerprint == parts_->fingerprint()) return;
  throw std::runtime_error(
      fmt::format("the saved state is of another run: '{}', expected '{}'", quote(fingerprint), parts_->fingerprint()));
}

void Run::load_pilot(Loader& in) {
  check_fingerprint(in);
  if (!parts_->race) throw std::runtime_error("the saved state is of another run: its sampler was still being chosen");
  std::string pilot;
  in(parts_->elapsed_before, pilot);
  parts_->started = Clock::now();
  parts_->race->load(std::move(pilot));
}

void Run::check_same_model(const std::vector<std::string>& places_of_chains) {
  constexpr const char* sentence =
      "the model is not the one that the run was made with: its log p of the saved states is another";
  // Chains of the run's own sampler may draw some of the variables anew when they are put at a state; these do not.
  const ChainGroup own = own_chains(engine());
  if (own.count == 0) return;
  EngineOptions places;
  places.reference.resize(parts_->model.layout.variables);
  std::vector<double> log_prob(own.count);
  for (std::size_t k = 0; k < own.count; ++k) {
    Loader in(places_of_chains[own.first + k]);
    in(places.starts.emplace_back(), log_prob[k]);
    if (places.starts.back().size() != parts_->model.layout.variables) throw InputError(sentence);
  }
  std::vector<double> now(own.count);
  try {
    make_engine(parts_->model, parse_sampler(GibbsRow::name), places)
        .engine->observe({0, own.count}, {.log_prob = now});
  } catch (const InputError&) {
    throw InputError(sentence);
  }
  for (std::size_t c = 0; c < now.size(); ++c) {
    if (!(std::abs(now[c] - log_prob[c]) <= 1e-9 * std::max(1.0, std::abs(log_prob[c])))) throw InputError(sentence);
  }
}

void Run::take_choice(const Choice& choice) {
  if (parts_->race == nullptr && !parts_->choice) {
    throw std::runtime_error(
        "the saved state is of another run: its sampler was chosen by 'auto', and this one was named");
  }
  if (parts_->race != nullptr || parts_->choice->sampler != choice.sampler) {
    RunOptions options = parts_->race ? parts_->race->options() : parts_->options;
    const RunHooks hooks = parts_->hooks;
    parts_ = make_parts(parts_->model, parse_sampler(choice.sampler), options, hooks);
  }
  parts_->choice = choice;
}

RunResult run(const Model& model, const Sampler& sampler, const RunOptions& options, const RunHooks& hooks) {
  Run run(model, sampler, options, hooks);
  run.warm_up();
  run.sample(options.seconds > 0.0 ? std::numeric_limits<std::size_t>::max() : options.draws);
  return run.finish();
}

}  // namespace poise
