/// The best state of models without factors: all states, annealing of user code, or what tempered chains visit.
#include "inference/optimize/best_draw.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <poise/run.hpp>
#include "base/thread_pool.hpp"
#include "inference/optimize/batch_annealing.hpp"
#include "inference/optimize/best_states.hpp"
#include "models/as_network.hpp"
#include "models/user/batch_target.hpp"

namespace poise {

namespace {

constexpr std::size_t kTempered = 4;
constexpr std::size_t kWarmup = 200;  // sweeps; temperatures are adapted in them
constexpr std::uint64_t kLongestRound = 1000000;

RunOptions run_options(const OptimizeOptions& options, const OptimizeStart& start) {
  RunOptions run;
  run.chains = kTempered;
  run.warmup = kWarmup;
  if (options.sweeps) run.warmup = std::clamp<std::size_t>(*options.sweeps / 2, 1, kWarmup);
  run.seed = options.seed;
  run.threads = options.threads;
  run.keep = Keep::monitors;
  if (!start.states.empty()) {
    run.start = Start::given;
    for (std::size_t chain = 0; chain < kTempered; ++chain) {
      const std::vector<Value>& state = start.states[chain % start.states.size()];
      run.given.insert(run.given.end(), state.begin(), state.end());
    }
  }
  return run;
}

/// What is found, and when that is enough.
class Findings {
 public:
  Findings(const OptimizeOptions& options, const OptimizeHooks& hooks)
      : options_(&options), hooks_(&hooks), best_(options.solutions) {}

  std::uint64_t sweeps = 0;

  [[nodiscard]] bool takes(double log_prob) const { return best_.takes(log_prob); }
  void add(double log_prob, std::span<const Value> state) {
    if (best_.add(log_prob, state)) history_.push_back({seconds(), sweeps, log_prob});
  }
  [[nodiscard]] bool interrupted() const { return hooks_->stop != nullptr && *hooks_->stop; }
  [[nodiscard]] bool is_over() const {
    const bool reached = options_->target && !history_.empty() && history_.back().objective >= *options_->target;
    return reached || interrupted() || (options_->sweeps && sweeps >= *options_->sweeps) ||
           (options_->seconds && seconds() >= *options_->seconds);
  }
  void tell() const {
    if (!hooks_->progress || history_.empty()) return;
    const double by_sweeps =
        options_->sweeps ? static_cast<double>(sweeps) / static_cast<double>(*options_->sweeps) : 0.0;
    const double by_clock = options_->seconds ? seconds() / *options_->seconds : 0.0;
    hooks_->progress(history_.back(), std::min(1.0, std::max(by_sweeps, by_clock)));
  }
  [[nodiscard]] OptimizeAnswer answer(const Model& model, std::string reason) {
    OptimizeAnswer answer;
    answer.objective = "log_prob";
    answer.solutions = best_.take();
    if (answer.solutions.empty())
      throw InputError(fmt::format("{}: interrupted before there was a state to show", model.name));
    if (answer.best().objective == -std::numeric_limits<double>::infinity())
      throw InputError(fmt::format("{}: found no state of positive probability", model.name));
    answer.history = std::move(history_);
    answer.reason = std::move(reason);
    answer.seconds = seconds();
    answer.interrupted = interrupted();
    return answer;
  }

 private:
  [[nodiscard]] double seconds() const { return seconds_since(begun_); }

  const OptimizeOptions* options_;
  const OptimizeHooks* hooks_;
  Clock::time_point begun_ = Clock::now();
  BestStates best_;
  std::vector<Improvement> history_;
};

OptimizeAnswer enumerated(const Model& model, std::span<const double> log_prob, Findings& findings,
                          const OptimizeStart& start) {
  const std::vector<Value> states = all_states(model.layout, log_prob.size());
  const std::size_t n = model.layout.variables;
  for (std::size_t k = 0; k < log_prob.size(); ++k) {
    const std::span<const Value> state = std::span(states).subspan(k * n, n);
    bool agrees = true;
    for (std::size_t i = 0; i < start.fixed.size(); ++i) {
      agrees = agrees && (!start.fixed[i] || *start.fixed[i] == state[i]);
    }
    if (agrees) findings.add(log_prob[k], state);
  }
  OptimizeAnswer answer = findings.answer(model, fmt::format("all {} states were looked at", log_prob.size()));
  answer.optimal = true;
  answer.bound = answer.best().objective;
  std::erase_if(answer.solutions, [](const Solution& it) { return !std::isfinite(it.objective); });
  return answer;
}

OptimizeAnswer annealed(const Model& model, const BatchTarget& target, const OptimizeOptions& options,
                        const OptimizeStart& start, Findings& findings) {
  BatchAnnealing annealing(
      target.shape().cardinalities, start, [&](std::span<const Value> rows) { return target.log_probs(rows); },
      options.seed);
  const auto visited = [&](double log_prob, std::span<const Value> state) {
    if (findings.takes(log_prob)) findings.add(log_prob, state);
  };
  const auto is_over = [&] {
    findings.tell();
    return findings.is_over();
  };
  bool stopped = false;
  try {
    // A limit of sweeps has three rounds of its longest kind.
    annealing.run(options.sweeps ? std::max<std::uint64_t>(1, *options.sweeps / 4) : kLongestRound, findings.sweeps,
                  {visited, is_over});
  } catch (const RunStopped&) {
    stopped = true;
  }
  OptimizeAnswer answer = findings.answer(model, "annealing of 32 chains, by log p alone");
  answer.interrupted = answer.interrupted || stopped;
  std::erase_if(answer.solutions, [](const Solution& it) { return !std::isfinite(it.objective); });
  return answer;
}

OptimizeAnswer tempered(const Model& model, const OptimizeOptions& options, const OptimizeStart& start,
                        Findings& findings) {
  const bool fixes =
      std::any_of(start.fixed.begin(), start.fixed.end(), [](const auto& level) { return level.has_value(); });
  if (fixes) throw InputError("--fix: variables of this kind of model cannot be fixed");
  std::atomic<bool> stop = false;
  const RunHooks run_hooks{.progress = [&](const Progress&) { stop = findings.is_over(); }, .stop = &stop};
  Run run(model, parse_sampler("temper"), run_options(options, start), run_hooks);
  const auto look = [&] {
    const std::vector<double> log_prob = run.log_prob();
    if (std::none_of(log_prob.begin(), log_prob.end(), [&](double value) { return findings.takes(value); })) return;
    const std::vector<Value> states = run.states();
    const std::size_t n = model.layout.variables;
    for (std::size_t chain = 0; chain < kTempered; ++chain) {
      findings.add(log_prob[chain], std::span(states).subspan(chain * n, n));
    }
  };
  look();
  run.warm_up();
  findings.sweeps += run.options().warmup.value_or(kWarmup);
  look();
  while (!findings.is_over()) {
    run.advance(run.engine().traits().steps_per_sweep);
    ++findings.sweeps;
    look();
    findings.tell();
  }
  return findings.answer(model, "the best state that chains came across, by replica exchange");
}

}  // namespace

OptimizeAnswer find_best_draw(const Model& model, const OptimizeOptions& options, const OptimizeStart& start,
                              const OptimizeHooks& hooks) {
  Findings findings(options, hooks);
  std::optional<std::vector<double>> log_prob;
  try {
    log_prob = tabled_log_probs(model);
  } catch (const RunStopped&) {
    return findings.answer(model, "");  // says that there is none yet
  }
  if (log_prob) return enumerated(model, *log_prob, findings, start);
  if (const auto* callback = std::get_if<CallbackDescription>(&model.description)) {
    return annealed(model, *callback->target, options, start, findings);
  }
  return tempered(model, options, start, findings);
}

}  // namespace poise
