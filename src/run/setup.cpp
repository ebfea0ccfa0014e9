/// What a run has before its first round: what its ranks agree on, its chains, and the length of its warm-up.
#include <array>

#include <sched.h>
#include <unistd.h>

#include <fmt/format.h>

#include <poise/extend/engines/samplers.hpp>
#include "engines/divided_engine.hpp"
#include "engines/rows.hpp"
#include "run/quench.hpp"
#include "run/run_core.hpp"
#include "run/start.hpp"

namespace poise {

namespace {

/// More threads than this on a core only get in each other's way.
constexpr unsigned kThreadsPerCore = 4;
/// States that are kept for checks: in at most so many bytes, and not where there are so many chains that one of each
/// is enough.
constexpr double kMostKept = 1 << 26;
constexpr std::size_t kEnoughChains = 64;
/// Steps of a draw where a step changes many variables. Each proposes something for all of them, yet leaves most as
/// they are: on random small models, right runs of 1000 draws warn of few effective draws, or of R-hat, twice as often
/// with one step, and as often as single-site samplers with four.
constexpr std::uint64_t kManyFlipSteps = 4;
/// Of a limit in seconds, what finding starts may take.
constexpr double kQuenchFraction = 0.02;

std::uint64_t steps_of(std::size_t draws, std::uint64_t thin, const char* what) {
  std::uint64_t steps = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(draws), thin, &steps)) {
    throw InputError(
        fmt::format("{} draws of {} steps each are too many to count: make {} shorter", draws, thin, what));
  }
  return steps;
}

/// The same for all ranks that share the same cores of the same machine.
std::uint64_t cores_key() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  ::sched_getaffinity(0, sizeof cores, &cores);
  std::string bytes(host.data());
  bytes.append(reinterpret_cast<const char*>(&cores), sizeof cores);
  return std::hash<std::string>()(bytes);
}

/// Every second pair of tempered chains begins where others were cooled to, so that chains that stay on different sides
/// of a first-order transition disagree. The two of a pair exchange parts of their states, and begin alike.
void quench_half(const Model& model, const RunOptions& options, EngineOptions& starting) {
  const bool on_gpu = model.fibers() != nullptr && options.device == Device::cuda;
  if (options.start != Start::uniform || on_gpu) return;
  std::vector<std::size_t> chosen;
  for (std::size_t c = 0; c < starting.starts.size(); ++c) {
    if ((starting.first_chain + c) / 2 % 2 == 1) chosen.push_back(c);
  }
  if (chosen.empty()) return;
  const std::uint64_t first = starting.first_chain + chosen.front();
  const std::vector<Value> states = quenched_states(model, {.chains = chosen.size(),
                                                            .seed = options.seed,
                                                            .first_chain = first / 4 * 2 + first % 2,
                                                            .seconds = kQuenchFraction * options.seconds});
  if (states.empty()) return;
  const std::size_t n = model.layout.variables;
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    const auto begin = states.begin() + static_cast<std::ptrdiff_t>(k * n);
    starting.starts[chosen[k]].assign(begin, begin + static_cast<std::ptrdiff_t>(n));
  }
}

/// What a rank says of itself before the run begins.
struct Introduction {
  std::uint64_t has_sink;
  std::uint64_t listens;
  double memory;
  std::uint64_t cores;
};

/// What it says between two rounds.
struct News {
  double seconds;
  double elapsed;
  std::uint64_t stop;
  std::uint64_t is_due;
};

}  // namespace

Run::Core::Core(Model the_model, Sampler the_sampler, const RunOptions& the_options, RunHooks the_hooks)
    : model(std::move(the_model)),
      sampler(std::move(the_sampler)),
      options(the_options),
      hooks(std::move(the_hooks)),
      reporter(hooks.progress) {
  if (hooks.collective != nullptr && hooks.collective->size() == 1) hooks.collective = nullptr;
  agreed.has_sink = hooks.sink != nullptr;
  agreed.listens = static_cast<bool>(reporter);
  agreed.memory = memory_for_draws(options);
  agreed.cores = std::max(1U, std::thread::hardware_concurrency());
  if (hooks.collective != nullptr) {
    const Introduction mine{agreed.has_sink, agreed.listens, agreed.memory, cores_key()};
    const std::vector<Introduction> all = hooks.collective->of_all(mine);
    agreed.has_sink = all[0].has_sink != 0;
    agreed.listens = all[0].listens != 0;
    unsigned here = 0;
    for (const Introduction& one : all) {
      agreed.memory = std::min(agreed.memory, one.memory);
      here += one.cores == mine.cores ? 1 : 0;
    }
    agreed.cores = std::max(1U, agreed.cores / here);
    agree(0.0);
  }
  options.check(model, agreed.has_sink);
  if (hooks.collective == nullptr) return;
  // Two ladders that exchange components stay together.
  division = std::make_shared<const Division>(*hooks.collective, options.chains, is_row<TemperRow>(sampler) ? 2 : 1);
}

double Run::Core::agree(double seconds) {
  if (hooks.collective == nullptr) return seconds;
  const News mine{seconds, elapsed(), is_told_to_stop(), reporter.due()};
  const std::vector<News> all = hooks.collective->of_all(mine);
  agreed.elapsed = all[0].elapsed;
  agreed.is_due = all[0].is_due != 0;
  for (const News& one : all) {
    agreed.stop = agreed.stop || one.stop != 0;
    seconds = std::max(seconds, one.seconds);
  }
  return seconds;
}

void Run::Core::make_chains() {
  const FirstStates states = is_row<TemperRow>(sampler) ? FirstStates::any : FirstStates::possible;
  const auto make = [&] {
    EngineOptions starting = engine_options(model, options, states, division);
    if (is_row<TemperRow>(sampler)) quench_half(model, options, starting);
    return make_engine(model, sampler, starting);
  };
  if (!division) return take(make());
  TunableEngine own;
  bool target_stopped = false;
  try {
    own = make();
  } catch (const RunStopped&) {
    target_stopped = true;
  }
  if (division->collective().any(target_stopped)) throw RunStopped{};
  take(divide(std::move(own), division));
  const auto ranks = static_cast<std::size_t>(division->collective().size());
  if (division->busy() == ranks) return;
  notes.push_back(fmt::format("{} ranks for {} {}: {} of them {} nothing to do", ranks, options.chains,
                              options.chains == 1 ? "chain" : "chains", ranks - division->busy(),
                              ranks - division->busy() == 1 ? "has" : "have"));
}

void Run::Core::take(TunableEngine chains_made) {
  made = std::move(chains_made);
  const bool same_start = options.start == Start::zeros ||
                          (options.start == Start::given && options.given.size() == model.layout.variables);
  if (same_start && options.chains > 1 && !made.engine->traits().independent) {
    notes.emplace_back(
        "all chains begin at the same state, so R-hat may be near 1 although they have not left its neighbourhood; "
        "--init dispersed starts them far apart");
  }
  options.given.clear();
  if (options.thin == 0) options.thin = usual_thin();
  steps_of(options.draws, options.thin, "the run");
  share_out();
  length.emplace(made.engine->traits().chunk);
  make_recorder();
  batches.resize(options.rao_blackwell ? options.chains : 0);
  const double bytes = 3.0 * static_cast<double>(states_to_check(model.layout.variables)) * model.layout.variables;
  const bool keeps = options.chains < kEnoughChains && bytes < kMostKept && !made.engine->traits().independent;
  kept.resize(keeps ? options.chains : 0);
  if (sampler.settings.first_order && model.sparse) {
    notes.emplace_back(
        model.linear ? "log p of this model is linear in every variable, so first-order ratios are exact and no "
                       "gradient is used"
                     : "a move of this model changes few ratios, so exact ratios, which cost no more than a gradient, "
                       "replace first-order ones");
  }
}

void Run::Core::make_recorder() {
  const bool states_stay = division != nullptr && hooks.sink != nullptr && hooks.sink->takes_own_states();
  const bool has_states = hooks.collective == nullptr || hooks.draws_to == Collective::To::all ||
                          (hooks.collective->is_root() && !states_stay);
  recorder.emplace(model, options,
                   Recorder::Holding{agreed.memory, agreed.has_sink, has_states, made.engine->traits().gives_bits,
                                     options.threads, hooks.observers, states_stay});
}

void Run::Core::share_out() {
  const unsigned cores = agreed.cores;
  const std::size_t own = std::max<std::size_t>(1, own_chains(*made.engine).count);
  const auto useful = static_cast<unsigned>(std::min<std::size_t>(own, kThreadsPerCore * cores));
  if (options.threads > useful) {
    notes.push_back(fmt::format("{} threads for {} {} on {} {}: using {}", options.threads, own,
                                own == 1 ? "chain" : "chains", cores, cores == 1 ? "core" : "cores", useful));
  }
  options.threads = std::min(options.threads == 0 ? cores : options.threads, useful);
  if (model.fibers()) options.threads = 1;
  const bool is_user_code =
      model.fibers() != nullptr || std::holds_alternative<std::shared_ptr<const OwnDescription>>(model.description);
  chains.emplace(*made.engine, options.threads, model.fibers(), is_user_code);
}

WarmupPlan Run::Core::plan_of_options() const {
  WarmupPlan plan;
  plan.may_end_early = !options.warmup.has_value();
  plan.steps = options.warmup ? steps_of(*options.warmup, options.thin, "the warm-up") : usual_warmup();
  return plan;
}

std::uint64_t Run::Core::usual_thin() const {
  const std::uint64_t sweep = made.engine->traits().steps_per_sweep;
  return sampler.settings.many ? std::max(sweep, kManyFlipSteps) : sweep;
}

std::uint64_t Run::Core::usual_warmup() const {
  const EngineTraits& traits = made.engine->traits();
  return traits.independent ? 0 : kWarmupSweeps * traits.steps_per_sweep;
}

}  // namespace poise
