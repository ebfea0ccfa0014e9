/// Decides between exact inference and sampling, finds the sampler, and puts the answer together.
#include <poise/infer/marginals.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include <poise/infer/other_modes.hpp>
#include <poise/report/text.hpp>

namespace poise {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Draws per chain that diagnostics get to see; marginals use every step, whatever is recorded.
constexpr double kDraws = 4000.0;
constexpr double kDrawBytes = 4e8;  // of all chains together, at most

/// What is automatic must not take hours: a plan of small memory can still visit a vast number of table entries.
constexpr double kLongest = 600.0;   // seconds of exact inference
constexpr double kOperation = 1e-9;  // seconds for a table entry; 0.1 to 2 were seen

/// From the probabilities of levels above 0 to those of all levels; observed variables are certain.
Marginals spread(const Network& network, std::span<const double> entries) {
  Marginals out(network.cardinalities);
  std::size_t next = 0;
  for (Index i = 0; i < network.num_variables(); ++i) {
    const std::span<double> levels = out.of(i);
    if (network.is_observed(i)) {
      levels[network.observed[i]] = 1.0;
      continue;
    }
    double rest = 1.0;
    for (std::size_t k = 1; k < levels.size(); ++k) rest -= levels[k] = entries[next++];
    levels[0] = std::max(0.0, rest);
  }
  return out;
}

/// Standard errors: that of level 0, which is one less the others, is taken as if the others were independent.
Marginals spread_errors(const Network& network, std::span<const double> entries) {
  Marginals out(network.cardinalities);
  std::size_t next = 0;
  for (Index i = 0; i < network.num_variables(); ++i) {
    if (network.is_observed(i)) continue;
    const std::span<double> levels = out.of(i);
    double squares = 0.0;
    for (std::size_t k = 1; k < levels.size(); ++k) {
      levels[k] = entries[next++];
      squares += levels[k] * levels[k];
    }
    levels[0] = std::sqrt(squares);
  }
  return out;
}

double root_mean_square(std::span<const double> errors) {
  double sum = 0.0;
  for (const double error : errors) sum += error * error;
  return errors.empty() ? 0.0 : std::sqrt(sum / static_cast<double>(errors.size()));
}

/// Runs samplers on one model, all with the same options but for length and thinning.
class Sampling {
 public:
  Sampling(const Model& model, const MarginalsOptions& options, const MarginalsHooks& hooks)
      : model_(model), options_(options), hooks_(hooks) {
    const double per_draw = static_cast<double>(std::max<Index>(1, model.layout.variables) * options.chains);
    draws_ = std::clamp(kDrawBytes / per_draw, 100.0, kDraws);
  }

  /// What the chains of all pilots settled to.
  [[nodiscard]] const std::vector<SettledChain>& settled() const { return settled_; }

  /// Two runs: one to learn how fast the sampler is, one with as many draws as tell its error. Each pilot has random
  /// numbers of its own: together they look at more of the distribution.
  Pilot pilot(const std::string& sampler, double seconds, std::uint64_t number) {
    constexpr std::size_t few = 10;
    RunOptions short_run = base();
    short_run.first_chain = 4 * (number + 1) * options_.chains;
    short_run.warmup = few;
    short_run.draws = few;
    const RunResult first = run_one(sampler, short_run, "pilot " + sampler);
    Pilot pilot;
    pilot.sampler = sampler;
    pilot.steps_per_sweep = first.options.thin;
    const double steps = static_cast<double>(first.steps) / static_cast<double>(options_.chains);
    pilot.steps_per_second = steps / std::max(first.sampling_seconds, 1e-6);
    pilot.error = std::numeric_limits<double>::infinity();
    if (first.interrupted) return pilot;

    RunOptions long_run = base();
    long_run.first_chain = short_run.first_chain;
    long_run.thin = thin_for(pilot, seconds, draws_ / 4);
    long_run.warmup = 100;
    long_run.seconds = seconds;
    const RunResult second = run_one(sampler, long_run, "pilot " + sampler);
    const double done = static_cast<double>(second.steps) / static_cast<double>(options_.chains);
    for (std::size_t c = 0; c < second.batches.size(); ++c) {
      SettledChain chain{sampler, c, {}};
      for (std::size_t k = 0; k < second.rao_blackwell.size(); ++k) {
        chain.entries.push_back(settled_mean(second.batches[c], k));
      }
      settled_.push_back(std::move(chain));
    }
    if (done > 0.0) {
      pilot.steps_per_second = done / std::max(second.sampling_seconds, 1e-6);
      pilot.error = root_mean_square(second.rao_blackwell_mcse) * std::sqrt(second.sampling_seconds);
      if (std::isnan(pilot.error)) pilot.error = std::numeric_limits<double>::infinity();
    }
    return pilot;
  }

  RunResult final_run(const Pilot& pilot) {
    RunOptions full = base();
    full.thin = thin_for(pilot, options_.seconds, draws_);
    full.warmup = static_cast<std::size_t>(std::max(100.0, draws_ / 10.0));
    full.seconds = options_.seconds;
    return run_one(pilot.sampler, full, pilot.sampler);
  }

 private:
  [[nodiscard]] RunOptions base() const {
    RunOptions run;
    run.chains = options_.chains;
    run.seed = options_.seed;
    run.threads = options_.threads;
    run.rao_blackwell = true;
    run.start = Start::dispersed;
    return run;
  }

  /// Whole sweeps, so that about `draws` of them are recorded in the time.
  static std::uint64_t thin_for(const Pilot& pilot, double seconds, double draws) {
    const double sweeps = pilot.steps_per_second * seconds / draws / static_cast<double>(pilot.steps_per_sweep);
    return pilot.steps_per_sweep * static_cast<std::uint64_t>(std::clamp(sweeps, 1.0, 1e6));
  }

  RunResult run_one(const std::string& sampler, const RunOptions& run_options, const std::string& title) {
    RunHooks run_hooks;
    run_hooks.stop = hooks_.stop;
    if (hooks_.progress) run_hooks.progress = [&](const Progress& progress) { hooks_.progress(title, progress); };
    RunResult result = run(model_, parse_sampler(sampler), run_options, run_hooks);
    if (hooks_.end) hooks_.end(title, result.interrupted);
    return result;
  }

  const Model& model_;
  const MarginalsOptions& options_;
  const MarginalsHooks& hooks_;
  double draws_;
  std::vector<SettledChain> settled_;
};

void note_other_mode(const Network& network, std::span<const SettledChain> pilots, const RunResult& result,
                     MarginalsAnswer& answer) {
  const std::optional<OtherMode> found = find_other_mode(pilots, result.rao_blackwell, result.rao_blackwell_mcse);
  if (!found) return;
  Index variable = 0;
  std::size_t entry = found->worst;
  for (; entry >= network.levels(variable) - 1; ++variable) entry -= network.levels(variable) - 1;
  const SettledChain& chain = pilots[found->chain];
  answer.elsewhere.push_back(fmt::format(
      "In the pilot run of {} chain {} settled elsewhere: {} of {} probabilities differ, that of {} = {} "
      "is {:.3f} there and {:.3f} in the answer; there may be a mode that the chains of the run have missed "
      "or weighed wrongly.",
      chain.sampler, chain.chain, found->count, chain.entries.size(), network.variable_name(variable),
      network.level_name(variable, static_cast<Index>(entry + 1)), chain.entries[found->worst].mean,
      result.rao_blackwell[found->worst]));
}

void sample_marginals(const std::shared_ptr<const Network>& network, const MarginalsOptions& options,
                      const MarginalsHooks& hooks, MarginalsAnswer& answer) {
  const Model model = make_model(network);
  Sampling sampling(model, options, hooks);
  const std::vector<std::string> candidates =
      options.sampler.empty() ? pilot_samplers() : std::vector<std::string>{options.sampler};
  const double pilot_seconds = std::clamp(options.seconds / 20.0, 0.05, 2.0);
  const auto stopped = [&] { return hooks.stop != nullptr && hooks.stop->load(); };
  for (const std::string& candidate : candidates) {
    if (!stopped()) answer.pilots.push_back(sampling.pilot(candidate, pilot_seconds, answer.pilots.size()));
  }
  std::stable_sort(answer.pilots.begin(), answer.pilots.end(),
                   [](const Pilot& a, const Pilot& b) { return a.error < b.error; });
  const RunResult result = sampling.final_run(answer.pilots.front());
  answer.interrupted = result.interrupted;
  answer.report = make_report(result);
  answer.marginals = spread(*network, result.rao_blackwell);
  answer.counted = spread(*network, result.empirical_marginals);
  answer.mcse = spread_errors(*network, result.rao_blackwell_mcse);
  note_other_mode(*network, sampling.settled(), result, answer);
  if (options.sampler.empty()) {
    answer.reason += fmt::format("; the sampler is the one with the smallest error per second in a pilot of {}",
                                 text::duration(pilot_seconds * static_cast<double>(candidates.size())));
  }
}

}  // namespace

const std::vector<std::string>& pilot_samplers() {
  static const std::vector<std::string> names = {"gibbs", "lsb", "lb:g=barker"};
  return names;
}

bool fits(const EliminationPlan& plan, double memory_limit) {
  return plan.complete && plan.bytes <= memory_limit && plan.operations * kOperation <= kLongest;
}

MarginalsAnswer find_marginals(const std::shared_ptr<const Network>& network, const MarginalsOptions& options,
                               const MarginalsHooks& hooks) {
  const auto started = Clock::now();
  MarginalsAnswer answer;
  answer.model = network->name;
  answer.method = options.method;
  const EliminationPlan plan = plan_elimination(*network);
  answer.width = plan.width;
  answer.bytes = plan.bytes;
  const std::string cost = plan.complete ? fmt::format("exact inference would take {} of tables (induced width {})",
                                                       text::bytes(plan.bytes), plan.width)
                                         : fmt::format("exact inference would meet a table of over {} entries",
                                                       text::number(plan.largest_clique, 3));
  const std::string limit = text::bytes(options.memory_limit);
  switch (options.method) {
    case Method::automatic:
      answer.method = fits(plan, options.memory_limit) ? Method::exact : Method::sample;
      answer.reason = plan.bytes > options.memory_limit ? fmt::format("{}, over the limit of {}", cost, limit)
                      : answer.method == Method::exact  ? fmt::format("{}, within the limit of {}", cost, limit)
                                                        : fmt::format("{}, within the limit, but about {}", cost,
                                                                      text::duration(plan.operations * kOperation));
      break;
    case Method::exact:
      answer.reason = fmt::format("exact inference was asked for; it takes {} of tables (induced width {})",
                                  text::bytes(plan.bytes), plan.width);
      break;
    case Method::sample: answer.reason = fmt::format("sampling was asked for; {}", cost); break;
  }
  if (answer.method == Method::exact) {
    const auto progress = [&](double part_done) {
      if (hooks.exact_progress) hooks.exact_progress(part_done);
      return hooks.stop == nullptr || !hooks.stop->load();
    };
    const JunctionTree tree(*network, plan, {.memory_limit = options.memory_limit, .progress = progress});
    answer.marginals = tree.marginals();
    answer.log_partition = tree.log_partition();
  } else {
    sample_marginals(network, options, hooks, answer);
  }
  answer.seconds = seconds_since(started);
  return answer;
}

}  // namespace poise
