/// The runner: sets chains up, warms up, samples in blocks, hands blocks to memory and to the sink.
#include <poise/run/run.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include <poise/run/batch_means.hpp>
#include <poise/run/start.hpp>
#include <poise/run/thread_pool.hpp>
#include <poise/run/warmup.hpp>
#include "recorder.hpp"

namespace poise {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Large enough that the clock and the file are not looked at too often, small enough for lively progress.
constexpr double kBlockSeconds = 0.2;
/// More threads than this on a core only get in each other's way.
constexpr unsigned kThreadsPerCore = 4;
constexpr std::size_t kBlockBytes = std::size_t{64} << 20;

/// A third of the machine's memory, in bytes: draws are held once, and a second time while they are handed over.
double memory_for_draws() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE)) / 3.0;
}

/// "the best cut among the draws is 3054 (chain 2, draw 17)", both counted from 0 as in the file of draws.
std::string best_objective(const Model& model, const Trace& trace) {
  const auto name = std::find(trace.monitor_names.begin(), trace.monitor_names.end(), model.objective);
  const std::vector<double>& values = trace.monitors[static_cast<std::size_t>(name - trace.monitor_names.begin())];
  const auto best =
      model.maximise ? std::max_element(values.begin(), values.end()) : std::min_element(values.begin(), values.end());
  const auto place = static_cast<std::size_t>(best - values.begin());
  return fmt::format("the best {} among the draws is {:.10g} (chain {}, draw {}, both counted from 0)", model.objective,
                     *best, place / trace.draws, place % trace.draws);
}

void average_rao_blackwell(const Ensemble& ensemble, std::span<const BatchMeans> batches, Index entries,
                           RunResult& result) {
  result.rao_blackwell.assign(entries, 0.0);
  result.rao_blackwell_mcse.assign(entries, 0.0);
  double visits = 0.0;
  for (std::size_t c = 0; c < ensemble.num_chains(); ++c) {
    const RaoBlackwell& rao_blackwell = ensemble.rao_blackwell(c);
    visits += static_cast<double>(rao_blackwell.count);
    for (Index k = 0; k < entries; ++k) result.rao_blackwell[k] += rao_blackwell.sums[k];
  }
  for (Index k = 0; k < entries; ++k) {
    result.rao_blackwell[k] = visits > 0.0 ? result.rao_blackwell[k] / visits : std::nan("");
    result.rao_blackwell_mcse[k] = standard_error(batches, k);
  }
}

/// Variables at one level in all chains, all the time, that no zero rules out other levels of by itself, and that every
/// chain ended with no way to change.
std::vector<Index> frozen_variables(const Model& model, const Ensemble& ensemble,
                                    std::span<const double> empirical_marginals) {
  const Index n = model.layout.variables;
  std::vector<std::uint8_t> frozen(n, 1);
  std::vector<std::uint8_t> here(n);
  for (std::size_t c = 0; c < ensemble.num_chains(); ++c) {
    ensemble.find_frozen(c, here);
    for (Index i = 0; i < n; ++i) frozen[i] = static_cast<std::uint8_t>(frozen[i] & here[i]);
  }
  std::vector<Index> out;
  Index first = 0;
  for (Index i = 0; i < n; ++i) {
    const std::span<const double> parts = empirical_marginals.subspan(first, model.layout.levels(i) - 1);
    first += model.layout.levels(i) - 1;
    const bool constant = std::all_of(parts.begin(), parts.end(), [](double p) { return p == 0.0 || p == 1.0; });
    if (constant && frozen[i] != 0 && model.possible(i) > 1) out.push_back(i);
  }
  return out;
}

}  // namespace

nlohmann::json settings_json(const RunResult& result) {
  const RunOptions& options = result.options;
  return {{"version", POISE_VERSION},
          {"model", result.model},
          {"sampler", result.sampler},
          {"seed", options.seed},
          {"chains", options.chains},
          {"warmup", options.warmup},
          {"draws", options.draws},
          {"thin", options.thin},
          {"seconds", options.seconds},
          {"threads", options.threads},
          {"first_chain", options.first_chain}};
}

void RunOptions::check(const Model& model) const {
  std::vector<std::string> problems;
  if (chains == 0) problems.emplace_back("the number of chains must be at least 1");
  if (draws == 0 && seconds <= 0.0) problems.emplace_back("the number of draws must be at least 1");
  if (!(seconds >= 0.0) || std::isinf(seconds)) problems.emplace_back("the seconds must be a positive number");
  if (start == Start::given && given.size() != model.layout.variables &&
      given.size() != chains * model.layout.variables) {
    problems.push_back(fmt::format("the initial state has {} values, but the model has {} variables", given.size(),
                                   model.layout.variables));
  } else if (start == Start::given) {
    for (std::size_t k = 0; k < given.size(); ++k) {
      const auto i = static_cast<Index>(k % model.layout.variables);
      if (given[k] < model.layout.cardinality(i)) continue;
      problems.push_back(fmt::format("the initial value of variable {} is level {}, but it has only {} levels", i,
                                     given[k], model.layout.cardinality(i)));
      break;
    }
  }
  const double bytes = static_cast<double>(chains) * static_cast<double>(draws) * model.layout.variables;
  if (keep == Keep::draws && seconds <= 0.0 && bytes > memory_for_draws()) {
    problems.push_back(
        fmt::format("{} chains of {} draws of {} variables take {:.1f} GB, more than a third of this machine's memory: "
                    "keep monitors only, or fewer draws",
                    chains, draws, model.layout.variables, bytes / 1e9));
  }
  if (!problems.empty()) throw InputError(fmt::format("{}", fmt::join(problems, "; ")));
}

RunResult run(const Model& model, const Sampler& sampler, const RunOptions& given_options, const RunHooks& hooks) {
  given_options.check(model);
  RunResult result;
  result.model = model.name;
  result.sampler = sampler.name;
  result.layout = model.layout;
  RunOptions& options = result.options;
  options = given_options;

  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const auto useful = static_cast<unsigned>(std::min<std::size_t>(options.chains, kThreadsPerCore * cores));
  if (options.threads > useful) {
    result.notes.push_back(fmt::format("{} threads for {} {} on {} {}: using {}", options.threads, options.chains,
                                       options.chains == 1 ? "chain" : "chains", cores, cores == 1 ? "core" : "cores",
                                       useful));
  }
  if (sampler.first_order && model.linear) {
    result.notes.emplace_back(
        "log p of this model is linear in every variable: first-order ratios are the exact ones, and this sampler is "
        "the "
        "one without gradients");
  }
  options.threads = std::min(options.threads == 0 ? cores : options.threads, useful);

  const auto started = Clock::now();
  const std::unique_ptr<Ensemble> ensemble = model.make_ensemble(
      sampler,
      {options.seed, options.first_chain, starting_states(model, options), reference_state(model, options.seed)});
  options.given.clear();
  if (options.thin == 0) options.thin = ensemble->steps_per_sweep();
  std::optional<ThreadPool> place;  // of the work
  if (model.fibers) {
    options.threads = 1;
    place.emplace(model.fibers);
  } else {
    place.emplace(options.threads);
  }
  ThreadPool& pool = *place;
  const std::size_t chains = options.chains;
  bool given_up = false;  // by the target
  const auto stopped = [&] {
    return given_up || (hooks.stop != nullptr && hooks.stop->load(std::memory_order_relaxed));
  };

  const auto acceptance_so_far = [&](double steps) {
    double accepted = 0.0;
    for (std::size_t c = 0; c < chains; ++c) accepted += ensemble->accepted(c);
    return steps > 0 ? accepted / steps : 0.0;
  };
  Progress held;  // the last report of warm-up that was not due, shown after all when its phase ends
  bool holding = false;
  auto last_report = started - std::chrono::seconds(1);
  const auto due = [&](bool always) {
    if (!hooks.progress || (!always && seconds_since(last_report) < 0.1)) return false;
    last_report = Clock::now();
    return true;
  };
  const auto mean_log_prob = [&] {
    double sum = 0.0;
    for (std::size_t c = 0; c < chains; ++c) sum += ensemble->log_prob(c);
    return sum / static_cast<double>(chains);
  };

  // Warm-up.
  const std::uint64_t warmup_steps = options.warmup * options.thin;
  const auto report_warmup = [&](Phase phase, std::uint64_t done) {
    if (!hooks.progress) return !stopped();
    if (holding && held.phase != phase) hooks.progress(held);
    Progress progress;
    progress.phase = phase;
    progress.done = done;
    progress.total = warmup_steps;
    progress.seconds = seconds_since(started);
    const double steps = static_cast<double>(done) * static_cast<double>(chains);
    progress.steps_per_second = steps / std::max(progress.seconds, 1e-9);
    progress.seconds_left = progress.seconds * static_cast<double>(warmup_steps - done) /
                            static_cast<double>(std::max<std::uint64_t>(done, 1));
    progress.acceptance_rate = acceptance_so_far(steps);
    progress.log_prob = mean_log_prob();
    progress.ess_log_prob = std::numeric_limits<double>::quiet_NaN();
    holding = !due(done == warmup_steps);
    if (holding) {
      held = progress;
    } else {
      hooks.progress(progress);
    }
    return !stopped();
  };
  WarmupOutcome warmup;
  try {
    warmup = warm_up(*ensemble, sampler, warmup_steps, pool, report_warmup);
  } catch (const RunStopped&) {
    given_up = true;
  }
  result.initial_steps = warmup.initial_steps;
  result.warmup_steps = warmup.steps;
  result.warmup_trace = std::move(warmup.trace);
  result.objective = warmup.objective;
  result.balanced = sampler.kind == Sampler::Kind::locally_balanced;
  if (result.balanced) {
    for (const double size : balance_grid()) {
      result.knots.push_back(size);
      result.log_phi.push_back(warmup.balance.log_g(size) - 0.5 * size - warmup.balance.log_g(0.0));
    }
  }
  for (std::size_t c = 0; c < chains; ++c) result.warmup_evals += ensemble->evals(c);
  result.warmup_seconds = seconds_since(started);

  // Sampling.
  Recorder recorder(model, options);
  if (hooks.sink != nullptr) {
    // A file name in a spec may hold bytes that are not UTF-8; JSON may not.
    constexpr auto replace = nlohmann::json::error_handler_t::replace;
    hooks.sink->begin(model.layout, chains, recorder.names(), settings_json(result).dump(-1, ' ', false, replace));
  }
  const auto sampling_started = Clock::now();
  for (std::size_t c = 0; c < chains; ++c) ensemble->reset_marginals(c);
  std::vector<BatchMeans> batches(chains);
  if (options.rao_blackwell) {
    for (std::size_t c = 0; c < chains; ++c) ensemble->reset_rao_blackwell(c);
  }
  const std::vector<ChainGroup> groups = pool.groups(chains, ensemble->group_size());
  const bool by_clock = options.seconds > 0.0;
  const auto time_is_up = [&] { return by_clock && seconds_since(sampling_started) >= options.seconds; };
  // Long draws are made in chunks, between which a chain looks whether it should stop.
  const std::uint64_t chunk = ensemble->chunk();
  std::size_t block = 1;
  auto ess_time = sampling_started;
  double ess = std::numeric_limits<double>::quiet_NaN();
  while (!stopped() && !time_is_up() && (by_clock || recorder.draws() < options.draws)) {
    const std::size_t first = recorder.draws();
    const std::size_t count = by_clock ? block : std::min(block, options.draws - first);
    const auto block_started = Clock::now();
    const auto draw_group = [&](std::size_t g) {
      const auto [first_chain, group] = groups[g];
      std::vector<double> accepted(group);
      for (std::size_t c = 0; c < group; ++c) accepted[c] = ensemble->accepted(first_chain + c);
      for (std::size_t draw = 0; draw < count; ++draw) {
        for (std::uint64_t done = 0; done < options.thin;) {
          const std::uint64_t steps = std::min(chunk, options.thin - done);
          ensemble->advance(first_chain, group, steps);
          done += steps;
          if (stopped() || (done < options.thin && time_is_up())) return;
        }
        for (std::size_t c = 0; c < group; ++c) {
          const double now = ensemble->accepted(first_chain + c);
          const double rate = (now - accepted[c]) / static_cast<double>(options.thin);
          recorder.record(*ensemble, first_chain + c, rate, options.thin);
          accepted[c] = now;
          if (options.rao_blackwell) {
            ensemble->visit_rao_blackwell(first_chain + c);
            const RaoBlackwell& rao_blackwell = ensemble->rao_blackwell(first_chain + c);
            batches[first_chain + c].add(first + draw + 1, rao_blackwell.sums, rao_blackwell.count);
          }
        }
        if (time_is_up()) return;
      }
    };
    try {
      pool.for_each(groups.size(), draw_group);
    } catch (const RunStopped&) {
      given_up = true;
    }
    recorder.level_off();
    if (hooks.sink != nullptr && recorder.draws() > first) hooks.sink->write(recorder.block_since(first));
    if (given_up) break;
    if (by_clock && options.keep == Keep::draws &&
        static_cast<double>(recorder.draws() * chains) * model.layout.variables > memory_for_draws()) {
      result.notes.emplace_back("stopped before the time was up: the draws fill a third of this machine's memory");
      break;
    }
    const double took = std::max(seconds_since(block_started), 1e-6);
    const std::size_t room =
        std::max<std::size_t>(1, kBlockBytes / (chains * std::max<Index>(1, model.layout.variables)));
    block = std::clamp<std::size_t>(static_cast<std::size_t>(static_cast<double>(count) * kBlockSeconds / took), 1,
                                    std::min(room, 2 * block + 8));
    const bool last = !by_clock && recorder.draws() >= options.draws;
    if (due(last)) {
      if (seconds_since(ess_time) > 0.5 || last) {
        ess = recorder.ess_log_prob();
        ess_time = Clock::now();
      }
      Progress progress;
      progress.phase = Phase::sample;
      progress.done = recorder.draws();
      progress.total = by_clock ? 0 : options.draws;
      progress.seconds = seconds_since(sampling_started);
      const double steps = static_cast<double>(recorder.draws() * chains) * static_cast<double>(options.thin);
      progress.steps_per_second = steps / std::max(progress.seconds, 1e-9);
      progress.seconds_left = by_clock ? std::max(0.0, options.seconds - progress.seconds)
                                       : progress.seconds * static_cast<double>(options.draws - recorder.draws()) /
                                             static_cast<double>(std::max<std::size_t>(recorder.draws(), 1));
      progress.acceptance_rate = recorder.mean_acceptance();
      progress.log_prob = mean_log_prob();
      progress.ess_log_prob = ess;
      hooks.progress(progress);
    }
  }
  result.sampling_seconds = seconds_since(sampling_started);
  result.interrupted = stopped();
  options.draws = recorder.draws();
  result.acceptance_rate = recorder.mean_acceptance();
  result.trace = recorder.take();
  result.steps = static_cast<std::uint64_t>(result.trace.draws) * chains * options.thin;
  result.updates = result.steps * std::max<std::uint64_t>(1, model.layout.variables / ensemble->steps_per_sweep());
  for (std::size_t c = 0; c < chains; ++c) result.evals += ensemble->evals(c);
  result.evals.target -= result.warmup_evals.target;
  result.evals.ratio -= result.warmup_evals.ratio;
  result.evals.gradient -= result.warmup_evals.gradient;
  result.evals.balance -= result.warmup_evals.balance;

  Index entries = 0;
  for (Index i = 0; i < model.layout.variables; ++i) entries += model.layout.levels(i) - 1;
  result.empirical_marginals.assign(entries, 0.0);
  for (std::size_t c = 0; c < chains; ++c) ensemble->add_marginals(c, result.empirical_marginals);
  for (double& part : result.empirical_marginals) part /= static_cast<double>(chains);
  if (!model.objective.empty() && result.trace.draws > 0) result.notes.push_back(best_objective(model, result.trace));
  if (options.rao_blackwell) {
    average_rao_blackwell(*ensemble, batches, entries, result);
    result.batches = std::move(batches);
  }
  if (model.into_support && result.trace.draws > 0)
    result.frozen = frozen_variables(model, *ensemble, result.empirical_marginals);
  return result;
}

}  // namespace poise
