/// The rounds of a run, and what happens between two of them.
#include "run/run_core.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <poise/extend/engines/samplers.hpp>
#include "base/options.hpp"
#include "engines/rows.hpp"
#include "run/start.hpp"

namespace poise {

namespace {

/// What one round records at most: of states, and of numbers alone, of which there are several arrays. Those above
/// 32 MiB come from the system anew each time, page by page, which costs more than to fill them.
constexpr std::size_t kStateBytes = std::size_t{16} << 20;
constexpr std::size_t kNumberBytes = std::size_t{64} << 20;
/// Long rounds end at multiples of so many draws: files have chunks of them, which a sink then need not put together.
constexpr std::size_t kWholeDraws = 256;
/// Where time is limited, chains that had settled at the end of the watch are warm after so many times its steps: each
/// has five effective samples or more in half of a watch.
constexpr std::uint64_t kWatches = 4;

}  // namespace

bool Run::Core::have_warmup() {
  if (warmup) return true;
  try {
    start_warmup(plan_of_options());
  } catch (const RunStopped&) {
    broken = true;
  }
  return !broken;
}

void Run::Core::hand_on_stop() {
  if (!broken) return;
  broken = false;
  throw RunStopped{};
}

void Run::Core::start_warmup(const WarmupPlan& plan) {
  if (sampler.learns() && made.tuner == nullptr) throw std::logic_error("the chains are frozen: sampling has begun");
  phase_began = Clock::now();
  make_warmup(plan);
  if (warmed.steps > 0) warmup->begin_from(warmed.function);
  warmup->start();
}

void Run::Core::make_warmup(const WarmupPlan& plan) { warmup.emplace(*chains, sampler, made, plan); }

bool Run::Core::run_warmup(double fraction, const Run& run) {
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
    std::uint64_t most = length->steps(left);
    if (watcher) most = std::min(most, watcher->steps_left(warmup->steps()));
    round([&] { return warmup->round(most); });
    tell_warmup();
    if (look()) {
      warmup_seconds += seconds_since(phase_began);
      return false;
    }
    if (hooks.after_round) hooks.after_round(run);
  }
  if (warmup->done()) watcher.reset();
  warmed = warmup->outcome();
  warmup_seconds += seconds_since(phase_began);
  phase_began = Clock::now();
  return true;
}

bool Run::Core::look() {
  if (watcher && !broken) {
    std::optional<double> spent;
    if (options.seconds > 0.0) spent = 1.0 - seconds_left(1.0) / options.seconds;
    Watcher::Verdict verdict = Watcher::Verdict::undecided;
    try {
      verdict = watcher->look(*made.engine, warmup->steps(), spent);
    } catch (const RunStopped&) {
      broken = true;
      return false;
    }
    if (verdict == Watcher::Verdict::replace) return true;
    if (verdict == Watcher::Verdict::undecided) warmup->extend(warmup->steps() + watcher->steps_left(warmup->steps()));
    if (verdict == Watcher::Verdict::keep) {
      if (watcher->finds_thin()) options.thin = choice->thin = watcher->thin();
      const bool learns = sampler.learns() || sampler.settings.many || made.self_tuning != nullptr;
      if (options.seconds > 0.0 && watcher->settled() && !learns) enough = kWatches * warmup->steps();
      watcher.reset();
    }
  }
  if (enough > 0 && warmup->steps() >= enough && !options.warmup && !warmup->done()) warmup->finish();
  const bool has_thin = choice && choice->thin > 0 && !options.warmup;
  if (has_thin && warmup->steps() >= kWarmupSweeps * choice->thin && !warmup->done()) warmup->finish();
  return false;
}

void Run::Core::tell_warmup() {
  if (!agreed.listens) return;
  Progress progress;
  progress.phase = warmup->phase();
  progress.done = warmup->steps();
  progress.total = warmup->total();
  progress.seconds = warmup_seconds + seconds_since(phase_began);
  const double made_steps = static_cast<double>(progress.done) * static_cast<double>(options.chains);
  progress.steps_per_second = made_steps / std::max(progress.seconds, 1e-9);
  progress.seconds_left = progress.seconds * static_cast<double>(progress.total - progress.done) /
                          static_cast<double>(std::max<std::uint64_t>(progress.done, 1));
  // Ranks need not ask each other for what is not shown.
  if (hooks.collective == nullptr || agreed.is_due || warmup->done()) {
    shown.acceptance_rate = made_steps > 0.0 ? total_accepted(*made.engine) / made_steps : 0.0;
    shown.log_prob = mean_log_prob(*made.engine) + model.log_constant;
  }
  progress.acceptance_rate = shown.acceptance_rate;
  progress.log_prob = shown.log_prob;
  progress.ess_log_prob = std::numeric_limits<double>::quiet_NaN();
  reporter.tell(progress, warmup->done());
}

void Run::Core::begin_sampling() {
  if (sampling) return;
  sampling = true;
  phase_began = Clock::now();
  if (warmup) {
    warmup->finish();
    warmed = warmup->outcome();
    warmup.reset();
  }
  made.tuner.reset();
  made.self_tuning.reset();
  made.ladder.reset();
  // Steps that are recorded may take a thousand times as long as those of the warm-up, as where independent draws are
  // made only when they are looked at: a first round of as many would overrun a time limit.
  length->begin_short();
  warmup_evals = total_evals(*made.engine);
  recorder->begin(*made.engine);
  chains->for_each_group([&](ChainGroup group) { made.engine->start_marginals(group, options.rao_blackwell); });
}

void Run::Core::begin_sink() {
  if (hooks.sink == nullptr || sink_begun) return;
  sink_begun = true;
  if (division != nullptr && hooks.sink->takes_own_states()) {
    hooks.sink->set_own_chains(division->own().first, division->own().count);
  }
  // A file name in a spec may hold bytes that are not UTF-8; JSON may not.
  constexpr auto replace = nlohmann::json::error_handler_t::replace;
  RunResult head;
  fill_head(head);
  hooks.sink->begin(model.layout, options.chains, recorder->names(), settings_json(head).dump(-1, ' ', false, replace));
}

void Run::Core::sampling_round(std::size_t draws) {
  const std::uint64_t thin = options.thin;
  const std::uint64_t most = length->steps(seconds_left(1.0));
  if (steps_in_draw > 0 || most < thin) {
    const std::uint64_t chunk = std::min(most, thin - steps_in_draw);
    round([&] {
      chains->advance(chunk);
      steps_in_draw += chunk;
      if (steps_in_draw < thin) return chunk;
      const std::size_t draw = recorder->draws();
      recorder->begin_block(1);
      chains->for_each_group([&](ChainGroup group) { record(group, draw); });
      steps_in_draw = 0;
      return chunk;
    });
    return;
  }
  const Keep recorded = hooks.observers.empty() ? options.keep : Keep::draws;
  const std::size_t bytes = recorded == Keep::draws ? kStateBytes : kNumberBytes;
  const std::size_t room = std::max<std::size_t>(
      1, static_cast<std::size_t>(static_cast<double>(bytes) / bytes_per_draw(model, recorded)) / options.chains);
  const std::size_t first = recorder->draws();
  std::size_t count = std::min({draws, room, static_cast<std::size_t>(most / thin)});
  if (count >= kWholeDraws) count -= (first + count) % kWholeDraws;
  recorder->begin_block(count);
  round([&] {
    chains->for_each_group([&](ChainGroup group) {
      if (!options.rao_blackwell) {
        for (std::size_t done = 0; done < count;) {
          const std::size_t next = kept.empty() ? count : kept[group.first].until_next(first + done);
          const std::size_t some = std::min(count - done, next);
          recorder->advance_and_record(*made.engine, group, thin, some);
          keep_states(group, first + (done += some));
        }
        return;
      }
      for (std::size_t draw = first; draw < first + count; ++draw) {
        made.engine->advance(group, thin);
        record(group, draw);
      }
    });
    return count * thin;
  });
}

void Run::Core::record(ChainGroup group, std::size_t draw) {
  recorder->record(*made.engine, group, options.thin);
  made.engine->visit_marginals(group);
  keep_states(group, draw + 1);
  if (!options.rao_blackwell) return;
  for (std::size_t c = group.first; c < group.first + group.count; ++c) {
    if (!batches[c].ends_at(draw + 1)) continue;
    const RaoBlackwell sums = made.engine->rao_blackwell(c);
    batches[c].add(draw + 1, sums.sums, sums.count);
  }
}

void Run::Core::keep_states(ChainGroup group, std::size_t draw) {
  if (kept.empty() || !kept[group.first].wants(draw)) return;
  const Index n = model.layout.variables;
  std::vector<Value> levels(group.count * n);
  made.engine->observe(group, {.levels = levels});
  for (std::size_t k = 0; k < group.count; ++k) {
    kept[group.first + k].add(std::span(levels).subspan(k * n, n), states_of_chain());
  }
}

CheckedStates Run::Core::checked_states(const RunResult& result, std::size_t levels,
                                        const std::vector<Value>& last) const {
  CheckedStates out{{}, options.chains, 1, model.layout.variables};
  if (result.independent) return out;
  std::size_t most = states_of_chain();
  // User code is asked for a hundredth of what the run has asked it for.
  if (model.fibers() != nullptr && levels > 0)
    most = std::min(most, result.evals.of_target() / (100 * levels * out.chains));
  // Chains that were broken off are not equally long.
  for (const KeptStates& chain : kept) most = std::min(most, chain.states().size());
  if (most == 0) return out;
  if (kept.empty()) {
    out.levels = last;
    return out;
  }
  out.per_chain = most;
  for (const KeptStates& chain : kept) {
    for (std::size_t k = 0; k < most; ++k) {
      const std::vector<Value>& x = chain.states()[k * chain.states().size() / most];
      out.levels.insert(out.levels.end(), x.begin(), x.end());
    }
  }
  return out;
}

void Run::Core::between_rounds(std::size_t wanted, const Run& run) {
  const DrawBatch& block = recorder->end_block(division.get(), hooks.draws_to);
  if (agreed.has_sink && block.count > 0) {
    if (hooks.sink != nullptr) hooks.sink->write(block);
    written = recorder->draws();
  }
  tell_sampling(wanted);
  if (hooks.after_round) hooks.after_round(run);
}

void Run::Core::note_what_is_held(RunResult& result) const {
  if (agreed.has_sink) return;
  if (options.keep == Keep::draws && !recorder->holds_states()) {
    result.notes.emplace_back(
        "the states of all draws exceed the memory limit and were not kept, so single variables are not diagnosed; a "
        "stored run has them");
  }
  if (recorder->stride() > 1) {
    result.notes.push_back(fmt::format(
        "the monitors of all draws exceed the memory limit: one draw in {} was kept and diagnosed, so effective "
        "sample sizes are lower bounds",
        recorder->stride()));
  }
}

void Run::Core::tell_sampling(std::size_t wanted) {
  const std::size_t draws = recorder->draws();
  const bool by_clock = options.seconds > 0.0;
  const bool last = !by_clock && draws >= wanted;
  const bool due = hooks.collective != nullptr ? agreed.is_due : reporter.due();
  if (!agreed.listens || !(last || due)) return;
  // Estimating it must not cost more than a hundredth of the time.
  if (reporter && (seconds_since(ess_time) > std::max(0.5, 100.0 * ess_cost) || last)) {
    const Clock::time_point begun = Clock::now();
    ess = recorder->ess_log_prob();
    ess_time = Clock::now();
    ess_cost = seconds_since(begun);
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
  progress.log_prob = mean_log_prob(*made.engine) + model.log_constant;
  progress.ess_log_prob = ess;
  reporter.tell(progress, last);
}

std::vector<std::string> Run::Core::save_chains(const std::function<void(std::size_t, Saver&)>& work) const {
  const ChainGroup own = own_chains(*made.engine);
  std::vector<std::string> saved;
  for (std::size_t c = own.first; c < own.first + own.count; ++c) {
    Saver out;
    work(c, out);
    saved.push_back(out.take());
  }
  return division ? division->gather(saved, Collective::To::root) : saved;
}

void Run::Core::share_batches() {
  if (!division || batches.size() + kept.size() == 0) return;
  const ChainGroup own = division->own();
  std::vector<std::string> mine;
  for (std::size_t c = own.first; c < own.first + own.count; ++c) {
    Saver out;
    if (!batches.empty()) out(batches[c]);
    if (!kept.empty()) out(kept[c]);
    mine.push_back(out.take());
  }
  const std::vector<std::string> all = division->gather(mine);
  for (std::size_t c = 0; c < all.size(); ++c) {
    Loader in(all[c]);
    if (!batches.empty()) in(batches[c]);
    if (!kept.empty()) in(kept[c]);
  }
}

void Run::Core::fill_head(RunResult& result) const {
  result.model = model.name;
  result.sampler = sampler.name;
  result.choice = choice;
  result.layout = model.layout;
  result.spins = model.spins;
  result.options = options;
  if (!options.warmup) {
    const bool has_thin = choice && choice->thin > 0;
    result.options.warmup =
        static_cast<std::size_t>(has_thin ? kWarmupSweeps : (usual_warmup() + options.thin - 1) / options.thin);
  }
}

std::string Run::Core::fingerprint() const {
  const bool of_device = made.engine != nullptr && made.engine->traits().of_device;
  std::string observed;
  for (const Observer& observer : hooks.observers) observed += " observing " + observer.name;
  return fmt::format("poise run {} {} {} variables {} {}{}{}", POISE_VERSION, model.name, sampler.name,
                     model.layout.variables, options_json(options, Option::Role::identity).dump(), observed,
                     of_device                ? " on a GPU"
                     : sampler.own != nullptr ? " by your own kernel"
                                              : "");
}

}  // namespace poise
