/// The rounds of a run, and the one place between two of them.
#include <poise/run/run.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include <poise/run/start.hpp>
#include "chains.hpp"
#include "memory.hpp"
#include "progress.hpp"
#include "recorder.hpp"
#include "run_result.hpp"
#include "warmup.hpp"

namespace poise {

namespace {

/// More threads than this on a core only get in each other's way.
constexpr unsigned kThreadsPerCore = 4;
/// States that one round records at most.
constexpr std::size_t kRoundBytes = std::size_t{64} << 20;
/// Sweeps of a warm-up that nobody asked to be of another length.
constexpr std::uint64_t kWarmupSweeps = 1000;
/// Of a limit in seconds, warm-up takes this fraction at most.
constexpr double kWarmupFraction = 0.5;

std::uint64_t steps_of(std::size_t draws, std::uint64_t thin, const char* what) {
  std::uint64_t steps = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(draws), thin, &steps)) {
    throw InputError(
        fmt::format("{} draws of {} steps each are too many to count: make {} shorter", draws, thin, what));
  }
  return steps;
}

TunableEngine make_chains(const Model& model, const Sampler& sampler, const RunOptions& options) {
  return make_engine(model, sampler, engine_options(model, options));
}

}  // namespace

struct Run::Parts {
  Parts(Model the_model, Sampler the_sampler, const RunOptions& the_options, RunHooks the_hooks)
      : model(std::move(the_model)),
        sampler(std::move(the_sampler)),
        options(the_options),
        hooks(std::move(the_hooks)),
        reporter(hooks.progress) {
    options.check(model, hooks.sink != nullptr);
  }

  void take(TunableEngine chains_made) {
    made = std::move(chains_made);
    options.given.clear();
    if (options.thin == 0) options.thin = made.engine->traits().steps_per_sweep;
    steps_of(options.draws, options.thin, "the run");
    share_out();
    length.emplace(made.engine->traits().chunk);
    recorder.emplace(model, options);
    batches.resize(options.rao_blackwell ? options.chains : 0);
    if (sampler.settings.first_order && model.linear) {
      notes.emplace_back(
          "log p of this model is linear in every variable: first-order ratios are the exact ones, and this sampler is "
          "the one without gradients");
    }
  }

  /// Threads, or fibers on this one.
  void share_out() {
    const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
    const auto useful = static_cast<unsigned>(std::min<std::size_t>(options.chains, kThreadsPerCore * cores));
    if (options.threads > useful) {
      notes.push_back(fmt::format("{} threads for {} {} on {} {}: using {}", options.threads, options.chains,
                                  options.chains == 1 ? "chain" : "chains", cores, cores == 1 ? "core" : "cores",
                                  useful));
    }
    options.threads = std::min(options.threads == 0 ? cores : options.threads, useful);
    if (model.fibers()) options.threads = 1;
    chains.emplace(*made.engine, options.threads, model.fibers());
  }

  [[nodiscard]] WarmupPlan plan_of_options() const {
    WarmupPlan plan;
    plan.may_end_early = !options.warmup.has_value();
    plan.steps = options.warmup ? steps_of(*options.warmup, options.thin, "the warm-up")
                                : kWarmupSweeps * made.engine->traits().steps_per_sweep;
    return plan;
  }

  [[nodiscard]] bool stopped() const {
    return broken || (hooks.stop != nullptr && hooks.stop->load(std::memory_order_relaxed));
  }
  /// Of the time that a fraction of the limit leaves.
  [[nodiscard]] double seconds_left(double fraction) const {
    if (options.seconds <= 0.0) return std::numeric_limits<double>::infinity();
    return fraction * options.seconds - elapsed_before - seconds_since(started);
  }
  [[nodiscard]] bool ended() const { return stopped() || seconds_left(1.0) <= 0.0; }

  /// What user code throws to end the run leaves chains at different steps: such a run can be looked at, not saved.
  /// `work` gives the steps it has made with every chain.
  template <class Work>
  void round(Work&& work) {
    const auto begun = Clock::now();
    try {
      const std::uint64_t made_steps = work();
      steps += made_steps;
      length->took(made_steps, seconds_since(begun));
    } catch (const RunStopped&) {
      broken = true;
    }
  }

  /// Where nothing is recorded there is nothing to keep: whoever drives the chains hears of the stop.
  void hand_on_stop() {
    if (!broken) return;
    broken = false;
    throw RunStopped{};
  }

  void start_warmup(const WarmupPlan& plan) {
    if (sampler.learns() && made.tuner == nullptr) throw std::logic_error("the chains are frozen: sampling has begun");
    phase_began = Clock::now();
    make_warmup(plan);
    warmup->start();
  }

  void make_warmup(const WarmupPlan& plan) {
    warmup.emplace(*chains, sampler, sampler.learns() ? made.tuner.get() : nullptr, plan);
  }

  void run_warmup(double fraction, const Run& run) {
    while (!warmup->done() && !stopped()) {
      const double left = seconds_left(fraction);
      if (left <= 0.0) {
        if (warmup->steps() < warmup->total()) {
          notes.push_back(fmt::format("warm-up was cut short by the limit of {:g} s: {} of {} steps were made",
                                      options.seconds, warmup->steps(), warmup->total()));
        }
        warmup->finish();
        break;
      }
      const std::uint64_t most = length->steps(left);
      round([&] { return warmup->round(most); });
      tell_warmup();
      if (hooks.after_round) hooks.after_round(run);
    }
    warmed = warmup->outcome();
    warmup_seconds += seconds_since(phase_began);
    phase_began = Clock::now();
  }

  void tell_warmup() {
    if (!reporter) return;
    Progress progress;
    progress.phase = warmup->phase();
    progress.done = warmup->steps();
    progress.total = warmup->total();
    progress.seconds = warmup_seconds + seconds_since(phase_began);
    const double made_steps = static_cast<double>(progress.done) * static_cast<double>(options.chains);
    progress.steps_per_second = made_steps / std::max(progress.seconds, 1e-9);
    progress.seconds_left = progress.seconds * static_cast<double>(progress.total - progress.done) /
                            static_cast<double>(std::max<std::uint64_t>(progress.done, 1));
    progress.acceptance_rate = made_steps > 0.0 ? total_accepted(*made.engine) / made_steps : 0.0;
    progress.log_prob = mean_log_prob(*made.engine);
    progress.ess_log_prob = std::numeric_limits<double>::quiet_NaN();
    reporter.tell(progress, warmup->done());
  }

  /// From here on nobody holds a tuner, and so nothing about the chains can change.
  void begin_sampling() {
    if (sampling) return;
    sampling = true;
    phase_began = Clock::now();
    if (warmup) {
      warmup->finish();
      warmed = warmup->outcome();
      warmup.reset();
    }
    made.tuner.reset();
    warmup_evals = total_evals(*made.engine);
    recorder->begin(*made.engine);
    chains->for_each_group([&](ChainGroup group) { made.engine->start_marginals(group, options.rao_blackwell); });
  }

  void begin_sink() {
    if (hooks.sink == nullptr || sink_begun) return;
    sink_begun = true;
    // A file name in a spec may hold bytes that are not UTF-8; JSON may not.
    constexpr auto replace = nlohmann::json::error_handler_t::replace;
    RunResult head;
    fill_head(head);
    hooks.sink->begin(model.layout, options.chains, recorder->names(),
                      settings_json(head).dump(-1, ' ', false, replace));
  }

  /// Whole draws where some fit into a round, or else the next steps of one.
  void sampling_round(std::size_t draws) {
    const std::uint64_t thin = options.thin;
    const std::uint64_t most = length->steps(seconds_left(1.0));
    if (steps_in_draw > 0 || most < thin) {
      const std::uint64_t part = std::min(most, thin - steps_in_draw);
      round([&] {
        chains->advance(part);
        steps_in_draw += part;
        if (steps_in_draw < thin) return part;
        const std::size_t draw = recorder->draws();
        chains->for_each_group([&](ChainGroup group) { record(group, draw); });
        steps_in_draw = 0;
        return part;
      });
      return;
    }
    const std::size_t room = std::max<std::size_t>(
        1, static_cast<std::size_t>(static_cast<double>(kRoundBytes) / bytes_per_draw(model, options.keep)) /
               options.chains);
    const std::size_t first = recorder->draws();
    const std::size_t count = std::min({draws, room, static_cast<std::size_t>(most / thin)});
    round([&] {
      chains->for_each_group([&](ChainGroup group) {
        for (std::size_t draw = first; draw < first + count; ++draw) {
          made.engine->advance(group, thin);
          record(group, draw);
        }
      });
      return count * thin;
    });
  }

  void record(ChainGroup group, std::size_t draw) {
    recorder->record(*made.engine, group, options.thin);
    if (!options.rao_blackwell) return;
    made.engine->visit_marginals(group);
    for (std::size_t c = group.first; c < group.first + group.count; ++c) {
      const RaoBlackwell& sums = made.engine->rao_blackwell(c);
      batches[c].add(draw + 1, sums.sums, sums.count);
    }
  }

  /// The one place between two rounds of sampling: draws go to the sink, memory is looked after, the caller may look
  /// in.
  void between_rounds(std::size_t wanted, const Run& run) {
    recorder->level_off();
    if (hooks.sink != nullptr && recorder->draws() > written) {
      hooks.sink->write(recorder->block_since(written));
      written = recorder->draws();
    }
    const double held = static_cast<double>(recorder->draws() * options.chains) * bytes_per_draw(model, options.keep);
    if (held > memory_for_draws()) {
      if (hooks.sink != nullptr && options.keep == Keep::draws) {
        forget_states();
      } else {
        notes.emplace_back("stopped before the time was up: the draws fill a third of this machine's memory");
        full = true;
      }
    }
    tell_sampling(wanted);
    if (hooks.after_round) hooks.after_round(run);
  }

  void forget_states() {
    if (recorder->holds_states()) {
      notes.emplace_back(
          "the states of all draws do not fit a third of this machine's memory: they are in the file only, and the "
          "variables one by one are not diagnosed");
    }
    recorder->forget_states();
  }

  void tell_sampling(std::size_t wanted) {
    const std::size_t draws = recorder->draws();
    const bool by_clock = options.seconds > 0.0;
    const bool last = !by_clock && draws >= wanted;
    if (!reporter || !(last || reporter.due())) return;
    if (seconds_since(ess_time) > 0.5 || last) {
      ess = recorder->ess_log_prob();
      ess_time = Clock::now();
    }
    Progress progress;
    progress.phase = Phase::sample;
    progress.done = draws;
    progress.total = by_clock ? 0 : wanted;
    progress.seconds = sampling_seconds + seconds_since(phase_began);
    const double made_steps = static_cast<double>(draws * options.chains) * static_cast<double>(options.thin);
    progress.steps_per_second = made_steps / std::max(progress.seconds, 1e-9);
    progress.seconds_left = by_clock ? std::max(0.0, seconds_left(1.0))
                                     : progress.seconds * static_cast<double>(wanted - draws) /
                                           static_cast<double>(std::max<std::size_t>(draws, 1));
    progress.acceptance_rate = recorder->mean_acceptance();
    progress.log_prob = mean_log_prob(*made.engine);
    progress.ess_log_prob = ess;
    reporter.tell(progress, last);
  }

  /// What is known of a run before its first draw.
  void fill_head(RunResult& result) const {
    result.model = model.name;
    result.sampler = sampler.name;
    result.layout = model.layout;
    result.options = options;
    if (!options.warmup) {
      const std::uint64_t sweeps = kWarmupSweeps * made.engine->traits().steps_per_sweep;
      result.options.warmup = static_cast<std::size_t>((sweeps + options.thin - 1) / options.thin);
    }
  }

  /// What a saved state must have in common with the run that loads it.
  [[nodiscard]] std::string fingerprint() const {
    return fmt::format("poise run {} {} {} chains {} variables {} thin {} seed {} first {} keep {}", POISE_VERSION,
                       model.name, sampler.name, options.chains, model.layout.variables, options.thin, options.seed,
                       options.first_chain, static_cast<int>(options.keep));
  }

  Model model;
  Sampler sampler;
  RunOptions options;
  RunHooks hooks;
  Clock::time_point started = Clock::now();
  TunableEngine made;
  std::optional<Chains> chains;
  std::optional<RoundLength> length;
  std::optional<Recorder> recorder;
  ProgressReporter reporter;
  std::vector<std::string> notes;

  std::optional<Warmup> warmup;  // while it lasts
  WarmupOutcome warmed;          // what came of it
  Evals warmup_evals;
  std::uint64_t steps = 0;  // of each chain, in all
  bool sampling = false;
  bool sink_begun = false;
  std::uint64_t steps_in_draw = 0;
  std::size_t written = 0;  // draws that the sink has
  std::vector<BatchMeans> batches;
  bool broken = false;  // by the target, inside a round
  bool full = false;    // memory is

  Clock::time_point phase_began = started;
  Clock::time_point ess_time = started;
  double ess = std::numeric_limits<double>::quiet_NaN();
  double elapsed_before = 0.0;  // by the run that was saved
  double warmup_seconds = 0.0;
  double sampling_seconds = 0.0;
};

Run::Run(Model model, Sampler sampler, const RunOptions& options, RunHooks hooks)
    : parts_(std::make_unique<Parts>(std::move(model), std::move(sampler), options, std::move(hooks))) {
  parts_->take(make_chains(parts_->model, parts_->sampler, parts_->options));
}

Run::Run(Model model, Sampler sampler, const RunOptions& options, TunableEngine chains, RunHooks hooks)
    : parts_(std::make_unique<Parts>(std::move(model), std::move(sampler), options, std::move(hooks))) {
  parts_->take(std::move(chains));
}

Run::~Run() = default;

void Run::warm_up() {
  if (parts_->sampling) return;
  if (!parts_->warmup) {
    try {
      parts_->start_warmup(parts_->plan_of_options());
    } catch (const RunStopped&) {
      parts_->broken = true;
      return;
    }
  }
  parts_->run_warmup(kWarmupFraction, *this);
}

const WarmupOutcome& Run::warm_up(const WarmupPlan& plan) {
  parts_->start_warmup(plan);
  parts_->run_warmup(1.0, *this);
  parts_->hand_on_stop();
  return parts_->warmed;
}

void Run::advance(std::uint64_t steps) {
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
  Parts& parts = *parts_;
  parts.begin_sink();
  if (parts.stopped()) return;  // a warm-up that was stopped can still be saved and go on
  parts.begin_sampling();
  parts.phase_began = Clock::now();
  const std::size_t most = std::numeric_limits<std::size_t>::max() - parts.recorder->draws();
  const std::size_t wanted = parts.recorder->draws() + std::min(draws, most);
  const double bytes = static_cast<double>(wanted) * static_cast<double>(parts.options.chains) *
                       bytes_per_draw(parts.model, parts.options.keep);
  if (bytes <= memory_for_draws()) parts.recorder->reserve(wanted - parts.recorder->draws());
  // However short the time, there is a first draw.
  const auto go_on = [&] { return !parts.full && !(parts.recorder->draws() == 0 ? parts.stopped() : parts.ended()); };
  while (parts.recorder->draws() < wanted && go_on()) {
    parts.sampling_round(wanted - parts.recorder->draws());
    parts.between_rounds(wanted, *this);
  }
  parts.sampling_seconds += seconds_since(parts.phase_began);
}

bool Run::ended() const { return parts_->ended(); }
const Model& Run::model() const { return parts_->model; }
const Engine& Run::engine() const { return *parts_->made.engine; }
const RunOptions& Run::options() const { return parts_->options; }
std::size_t Run::draws() const { return parts_->recorder->draws(); }
std::uint64_t Run::steps() const { return parts_->steps; }

std::vector<Value> Run::states() const {
  std::vector<Value> levels(parts_->options.chains * parts_->model.layout.variables);
  engine().observe({0, parts_->options.chains}, {.levels = levels});
  return levels;
}

void Run::restart(std::span<const Value> states) {
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
  parts_->chains->for_each_chain([&](std::size_t c) {
    engine().observe({c, 1}, {.log_prob = std::span(out).subspan(c, 1)});
  });
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
  result.interrupted = parts.stopped();
  result.options.draws = parts.recorder->draws();
  result.acceptance_rate = parts.recorder->mean_acceptance();
  result.warmup_evals = parts.sampling ? parts.warmup_evals : total_evals(engine);
  result.evals = total_evals(engine) - result.warmup_evals;
  result.trace = parts.recorder->take();
  result.steps = static_cast<std::uint64_t>(result.trace.draws) * parts.options.chains * parts.options.thin;
  result.updates =
      result.steps * std::max<std::uint64_t>(1, parts.model.layout.variables / engine.traits().steps_per_sweep);
  result.batches = std::move(parts.batches);
  add_function(parts.sampler, parts.warmed.function, result);
  add_marginals(parts.model, engine, result);
  return result;
}

std::string Run::save() const {
  Parts& parts = *parts_;
  if (parts.broken) throw std::runtime_error("a run that was broken off inside a round cannot be saved");
  Saver out;
  const double elapsed = parts.elapsed_before + seconds_since(parts.started);
  out(parts.fingerprint(), parts.sampling, parts.steps, parts.steps_in_draw, parts.written, parts.batches,
      parts.warmup_evals, elapsed, parts.warmup_seconds, parts.sampling_seconds, parts.warmed);
  parts.made.engine->save(out);
  out(*parts.recorder, parts.warmup.has_value());
  if (parts.warmup) parts.warmup->save(out);
  return out.take();
}

void Run::load(std::string_view bytes) {
  Parts& parts = *parts_;
  Loader in(bytes);
  std::string fingerprint;
  in(fingerprint);
  if (fingerprint != parts.fingerprint()) {
    throw std::runtime_error(
        fmt::format("the saved state is of another run: '{}', expected '{}'", quote(fingerprint), parts.fingerprint()));
  }
  in(parts.sampling, parts.steps, parts.steps_in_draw, parts.written, parts.batches, parts.warmup_evals,
     parts.elapsed_before, parts.warmup_seconds, parts.sampling_seconds, parts.warmed);
  parts.started = Clock::now();
  parts.made.engine->load(in);
  bool warming = false;
  in(*parts.recorder, warming);
  parts.warmup.reset();
  if (warming) {
    parts.make_warmup({});
    parts.warmup->load(in);
  }
  if (parts.sampling) parts.made.tuner.reset();
}

RunResult run(const Model& model, const Sampler& sampler, const RunOptions& options, const RunHooks& hooks) {
  Run run(model, sampler, options, hooks);
  run.warm_up();
  run.sample(options.seconds > 0.0 ? std::numeric_limits<std::size_t>::max() : options.draws);
  return run.finish();
}

}  // namespace poise
