/// Marginals by sampling: pilots of local samplers and of tempering, and the run of the best one.
#include "inference/sample_marginals.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <poise/extend/engines/samplers.hpp>
#include <poise/marginals.hpp>
#include "engines/rows.hpp"
#include "exact/exact_inference.hpp"
#include "report/text.hpp"
#include "run/recommend.hpp"

namespace poise {

namespace {

/// Draws per chain that diagnostics get to see; marginals use every step, whatever is recorded.
constexpr double kMostDraws = 4000.0;
constexpr double kFewestDraws = 100.0;
/// Fractions of the time: of all pilots together, and of the diagnosis of the draws at the end.
constexpr double kPilotFraction = 0.2;
constexpr double kReportFraction = 0.04;
/// Default numbers of chains.
constexpr std::size_t kFewChains = 4;
constexpr std::size_t kManyChains = 32;
constexpr std::size_t kGpuChains = 1024;
constexpr std::size_t kGpuLadders = 256;
/// Entries of marginals up to which many chains may each have batch means of all of them.
constexpr std::size_t kMostEntries = 60'000;
/// Differences of probabilities that do not matter.
constexpr double kNegligible = 1e-4;
/// Standard errors by which marginals of two samplers may differ, root mean square: errors are estimates themselves.
constexpr double kAgreement = 2.0;
/// Bytes of draws that diagnostics look through in a second, on the safe side.
constexpr double kDiagnosedPerSecond = 4e7;

double root_mean_square(std::span<const double> errors) {
  double sum = 0.0;
  for (const double error : errors) sum += error * error;
  return errors.empty() ? 0.0 : std::sqrt(sum / static_cast<double>(errors.size()));
}

/// A pilot, and all that its chains saw.
struct PilotRun {
  Pilot pilot;
  RunResult result;
  std::vector<SettledChain> settled;

  [[nodiscard]] bool is_tempered() const { return result.tempering.has_value(); }
};

/// Runs samplers on one model within one budget of time.
class Sampling {
 public:
  Sampling(const Model& model, const MarginalsOptions& options, const MarginalsHooks& hooks, Clock::time_point deadline)
      : model_(model), options_(options), hooks_(hooks), deadline_(deadline) {
    std::size_t entries = 0;
    for (Index i = 0; i < model.layout.variables; ++i) entries += model.layout.levels(i) - 1;
    moves_many_ = has_lanes(model) && entries <= kMostEntries;
    if (options.device == Device::cpu) return;
    const Sampler wanted = parse_sampler(options.sampler == "auto" ? GibbsRow::name : options.sampler);
    if (options.device == Device::cuda) require_cuda(model, wanted);
    // As many that batch means of all of them take no more memory than those of 32 of the largest network.
    const std::size_t most = kMostEntries * kManyChains / std::max<std::size_t>(1, entries);
    gpu_chains_ = options.chains > 0 ? options.chains : std::clamp(most, kManyChains, kGpuChains);
    const bool faster =
        options.device == Device::cuda || faster_device(model, wanted, gpu_chains_, options.threads) == Device::cuda;
    if (!faster) gpu_chains_ = 0;
  }

  /// Whether chains of a sampler run on a GPU. Ladders do where nothing else was asked for.
  [[nodiscard]] bool on_gpu(const std::string& sampler) const {
    const Sampler parsed = parse_sampler(sampler);
    return gpu_chains_ > 0 &&
           (is_single_site_gibbs(parsed) || (sampler == options_.sampler && is_row<TemperRow>(parsed)));
  }

  /// By the root's clock.
  [[nodiscard]] double seconds_left() const {
    const double here = std::chrono::duration<double>(deadline_ - Clock::now()).count();
    return hooks_.collective != nullptr ? hooks_.collective->of_root(here) : here;
  }

  /// A run that tells how fast the sampler is and how large its error. Each pilot has random numbers of its own:
  /// together they look at more of the distribution.
  PilotRun pilot(const std::string& sampler, double seconds, std::uint64_t number) {
    RunOptions options = base(seconds);
    options.first_chain = 4 * (number + 1) * std::max({options_.chains, kManyChains, gpu_chains_});
    options.chains = chains_of(sampler);
    options.keep = Keep::monitors;
    PilotRun out{{}, run_one(sampler, options, "pilot " + sampler), {}};
    const RunResult& result = out.result;
    out.pilot.sampler = sampler;
    out.pilot.steps_per_sweep = result.options.thin;
    const double steps = static_cast<double>(result.steps) / static_cast<double>(options.chains);
    out.pilot.steps_per_second = steps / std::max(result.sampling_seconds, 1e-6);
    out.pilot.error = root_mean_square(result.rao_blackwell_mcse) * std::sqrt(result.sampling_seconds);
    if (steps == 0.0 || std::isnan(out.pilot.error)) out.pilot.error = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < result.batches.size(); ++c) {
      SettledChain chain{sampler, c, {}};
      for (std::size_t k = 0; k < result.rao_blackwell.size(); ++k) {
        chain.entries.push_back(settled_mean(result.batches[c], k));
      }
      out.settled.push_back(std::move(chain));
    }
    return out;
  }

  /// The same, unless no state was found where the sampler could begin: then there is no pilot, while others may
  /// follow.
  void try_pilot(const std::string& sampler, double seconds, std::vector<PilotRun>& pilots) {
    try {
      pilots.push_back(pilot(sampler, seconds, pilots.size()));
    } catch (const InputError&) {
      if (options_.sampler != "auto" || sampler == "temper") throw;
    }
  }

  /// All the time that is left, but for a look at the draws.
  RunResult final_run(const Pilot& pilot) {
    const double left = seconds_left();
    const double look = kReportFraction * left;
    const std::size_t chains = chains_of(pilot.sampler);
    const double per_draw = static_cast<double>(std::max<Index>(1, model_.layout.variables) * chains);
    const double draws = std::clamp(look * kDiagnosedPerSecond / per_draw, kFewestDraws, kMostDraws);
    RunOptions options = base(std::max(left - look, 0.01));
    options.chains = chains;
    options.thin = thin_for(pilot, options.seconds, draws);
    options.warmup = static_cast<std::size_t>(std::max(kFewestDraws, draws / 10.0));
    return run_one(pilot.sampler, options, pilot.sampler);
  }

 private:
  [[nodiscard]] RunOptions base(double seconds) const {
    RunOptions run;
    run.seed = options_.seed;
    run.threads = options_.threads;
    run.seconds = seconds;
    run.rao_blackwell = true;
    run.start = Start::dispersed;
    return run;
  }

  [[nodiscard]] std::size_t chains_of(const std::string& sampler) const {
    if (options_.chains > 0) return options_.chains;
    if (on_gpu(sampler)) {
      return is_row<TemperRow>(parse_sampler(sampler)) ? std::min(kGpuLadders, gpu_chains_) : gpu_chains_;
    }
    return moves_many_ && sampler == "gibbs" ? kManyChains : kFewChains;
  }

  /// Whole sweeps, so that about `draws` of them are recorded in the time.
  static std::uint64_t thin_for(const Pilot& pilot, double seconds, double draws) {
    const double sweeps = pilot.steps_per_second * seconds / draws / static_cast<double>(pilot.steps_per_sweep);
    return pilot.steps_per_sweep * static_cast<std::uint64_t>(std::clamp(sweeps, 1.0, 1e6));
  }

  RunResult run_one(const std::string& sampler, RunOptions run_options, const std::string& title) {
    if (on_gpu(sampler)) run_options.device = Device::cuda;
    RunHooks run_hooks;
    run_hooks.stop = hooks_.stop;
    if (hooks_.progress) run_hooks.progress = [&](const Progress& progress) { hooks_.progress(title, progress); };
    run_hooks.collective = hooks_.collective;
    RunResult result;
    const auto work = [&] { result = run(model_, parse_sampler(sampler), run_options, run_hooks); };
    // Where one rank finds no state to begin in, the others must not begin either.
    if (hooks_.collective != nullptr) {
      hooks_.collective->together(work);
    } else {
      work();
    }
    if (hooks_.end) hooks_.end(title, result.interrupted);
    return result;
  }

  const Model& model_;
  const MarginalsOptions& options_;
  const MarginalsHooks& hooks_;
  Clock::time_point deadline_;
  bool moves_many_ = false;     // Gibbs does
  std::size_t gpu_chains_ = 0;  // of Gibbs, where it runs there
};

/// Why a local sampler must not be taken, if it must not: its pilot and that of tempering see different distributions.
std::string disagreement(const PilotRun& local, const PilotRun& tempered) {
  const std::vector<double>& here = local.result.rao_blackwell;
  const std::vector<double>& there = tempered.result.rao_blackwell;
  if (here.size() != there.size()) return "its pilot drew nothing";
  double squares = 0.0;
  for (std::size_t k = 0; k < here.size(); ++k) {
    const double error = std::hypot(local.result.rao_blackwell_mcse[k], tempered.result.rao_blackwell_mcse[k]);
    const double difference = std::abs(here[k] - there[k]);
    if (difference > kNegligible) squares += std::pow(difference / std::max(error, kNegligible), 2);
  }
  const double mean = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(1, here.size())));
  if (!(mean <= kAgreement)) {
    return fmt::format("its marginals differ from those of temper by {:.1f} standard errors on average", mean);
  }
  if (find_other_mode(local.settled, there, tempered.result.rao_blackwell_mcse) ||
      find_other_mode(tempered.settled, here, local.result.rao_blackwell_mcse)) {
    return "a chain of its pilot, or of that of temper, settled elsewhere";
  }
  return {};
}

void note_other_mode(const Network& network, std::span<const SettledChain> pilots, const RunResult& result,
                     MarginalsAnswer& answer) {
  const std::optional<OtherMode> found = find_other_mode(pilots, result.rao_blackwell, result.rao_blackwell_mcse);
  if (!found) return;
  Index variable = 0;
  std::size_t entry = found->worst;
  for (; entry >= network.levels(variable) - 1; ++variable) entry -= network.levels(variable) - 1;
  const SettledChain& chain = pilots[found->chain];
  answer.elsewhere.push_back(
      {"modes",
       fmt::format(
           "In the pilot run of {} chain {} settled elsewhere: {} of {} probabilities differ, that of {} = {} is "
           "{:.3f} there and {:.3f} in the answer, so a mode may be missed or weighed wrongly",
           chain.sampler, chain.chain, found->count, chain.entries.size(), network.variable_name(variable),
           network.level_name(variable, static_cast<Index>(entry + 1)), chain.entries[found->worst].mean,
           result.rao_blackwell[found->worst]),
       RunFacts{.sampler = result.sampler, .seconds = result.options.seconds}.better(INFINITY)});
}

/// The pilot whose sampler makes the run: the one with the smallest error, if it is `temper` or agrees with it.
std::size_t choose(std::vector<PilotRun>& pilots) {
  std::stable_sort(pilots.begin(), pilots.end(),
                   [](const PilotRun& a, const PilotRun& b) { return a.pilot.error < b.pilot.error; });
  const auto tempered =
      std::find_if(pilots.begin(), pilots.end(), [](const PilotRun& one) { return one.is_tempered(); });
  if (tempered == pilots.end()) return 0;
  for (auto one = pilots.begin(); one != tempered; ++one) {
    one->pilot.verdict = disagreement(*one, *tempered);
    if (one->pilot.verdict.empty()) return static_cast<std::size_t>(one - pilots.begin());
  }
  return static_cast<std::size_t>(tempered - pilots.begin());
}

void take_log_partition(const RunResult& result, MarginalsAnswer& answer) {
  if (!result.tempering || answer.log_partition || !std::isfinite(result.tempering->log_partition)) return;
  answer.log_partition = result.tempering->log_partition;
  answer.log_partition_error = result.tempering->log_partition_error;
}

}  // namespace

namespace marginals_parts {

namespace {

/// The joint table of the query, where its variables are among those that were sampled.
void take_joint(const SamplingTask& task, const RunResult& result, MarginalsAnswer& answer) {
  if (task.query == nullptr || !task.query->is_among(task.variables)) return;
  answer.joint = task.query->from_draws(result, effective_draws(result, *answer.report), task.variables);
  if (!result.trace.x.empty() || result.trace.draws == 0) return;
  answer.elsewhere.push_back(
      {"query", "The draws did not fit into memory, so the query has no answer", "fewer chains"});
}

}  // namespace

void sample_marginals(const SamplingTask& task, const MarginalsOptions& options, const MarginalsHooks& hooks,
                      MarginalsAnswer& answer) {
  const std::shared_ptr<const Network>& network = task.network;
  const auto stopped = [&] {
    const bool here = hooks.stop != nullptr && hooks.stop->load();
    return hooks.collective != nullptr ? hooks.collective->any(here) : here;
  };
  const Model model = network_model(network);
  Sampling sampling(model, options, hooks, task.deadline);
  const std::vector<std::string> candidates =
      options.sampler == "auto" ? pilot_samplers(model) : std::vector<std::string>{options.sampler};
  const double pilots_seconds = kPilotFraction * std::max(sampling.seconds_left(), 0.05);
  std::vector<PilotRun> pilots;
  for (const std::string& candidate : candidates) {
    // Tempering needs a while to find its ladder: it has as much time as all others together.
    const double local = std::max(1.0, static_cast<double>(candidates.size()) - 1.0);
    const bool alone = candidates.size() == 1;
    const double seconds = alone ? pilots_seconds : pilots_seconds / 2.0 / (candidate == "temper" ? 1.0 : local);
    if (!stopped()) sampling.try_pilot(candidate, seconds, pilots);
  }
  answer.interrupted = stopped();
  if (pilots.empty()) return;
  const std::size_t chosen = choose(pilots);
  const RunResult result = sampling.final_run(pilots[chosen].pilot);
  answer.interrupted = result.interrupted;
  answer.report = make_report(result);
  RunMarginals found = marginals_of(result, *answer.report);
  answer.marginals = std::move(found.marginals);
  answer.counted = std::move(found.counted);
  answer.mcse = std::move(found.mcse);
  take_joint(task, result, answer);
  take_log_partition(result, answer);
  std::vector<SettledChain> settled;
  for (PilotRun& one : pilots) {
    take_log_partition(one.result, answer);
    std::move(one.settled.begin(), one.settled.end(), std::back_inserter(settled));
  }
  // Chains of local samplers that are stuck say nothing about ladders, and those of a pilot are on their way.
  if (!result.tempering) note_other_mode(*network, settled, result, answer);
  std::rotate(pilots.begin(), pilots.begin() + static_cast<std::ptrdiff_t>(chosen),
              pilots.begin() + static_cast<std::ptrdiff_t>(chosen) + 1);
  for (const PilotRun& one : pilots) answer.pilots.push_back(one.pilot);
  if (sampling.on_gpu(answer.pilots.front().sampler)) answer.reason += "; chains ran on the GPU";
  if (options.sampler == "auto") {
    answer.reason += fmt::format(
        "; the sampler is the one with the smallest error per second, by the clock, in a pilot of {}, that agrees with "
        "tempering",
        text::duration(pilots_seconds));
  }
}

}  // namespace marginals_parts

std::vector<std::string> pilot_samplers(const Model& model) {
  std::vector<std::string> names = local_samplers(model);
  names.emplace_back("temper");
  return names;
}

std::optional<OtherMode> find_other_mode(std::span<const SettledChain> chains, std::span<const double> answer,
                                         std::span<const double> errors) {
  constexpr double far = 0.1;    // in probability
  constexpr double sure = 10.0;  // standard errors
  for (std::size_t c = 0; c < chains.size(); ++c) {
    OtherMode found{c, 0, 0};
    double largest = 0.0;
    for (std::size_t k = 0; k < answer.size(); ++k) {
      const auto [mean, error] = chains[c].entries[k];
      const double apart = std::abs(mean - answer[k]);
      const bool differs = apart > far && apart > sure * std::hypot(error, errors[k]);  // false where one is unknown
      if (!differs) continue;
      ++found.count;
      if (apart > largest) {
        largest = apart;
        found.worst = k;
      }
    }
    if (found.count > 0) return found;
  }
  return std::nullopt;
}

}  // namespace poise
