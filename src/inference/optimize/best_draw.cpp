/// The best state among those that tempered chains visit.
#include "inference/optimize/best_draw.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <poise/run.hpp>
#include "base/thread_pool.hpp"

namespace poise {

namespace {

constexpr std::size_t kChains = 4;
constexpr std::size_t kWarmup = 200;  // sweeps; temperatures are adapted in them

/// The best states so far, each once.
class Best {
 public:
  explicit Best(std::size_t capacity) : capacity_(capacity) {}

  /// Gives whether the best of all has risen.
  bool add(double log_prob, std::span<const Value> state) {
    if (solutions_.size() == capacity_ && log_prob < solutions_.back().objective) return false;
    const auto same = std::find_if(solutions_.begin(), solutions_.end(), [&](const Solution& solution) {
      return solution.objective == log_prob && std::equal(state.begin(), state.end(), solution.state.begin());
    });
    if (same != solutions_.end()) {
      ++same->count;
      return false;
    }
    const auto place = std::find_if(solutions_.begin(), solutions_.end(),
                                    [&](const Solution& solution) { return solution.objective < log_prob; });
    if (place == solutions_.end() && solutions_.size() == capacity_) return false;
    const bool rises = place == solutions_.begin();
    solutions_.insert(place, {log_prob, {state.begin(), state.end()}, 1});
    if (solutions_.size() > capacity_) solutions_.pop_back();
    return rises;
  }
  [[nodiscard]] bool takes(double log_prob) const {
    return solutions_.size() < capacity_ || log_prob >= solutions_.back().objective;
  }
  [[nodiscard]] std::vector<Solution> take() { return std::move(solutions_); }

 private:
  std::size_t capacity_;
  std::vector<Solution> solutions_;
};

RunOptions run_options(const OptimizeOptions& options, const OptimizeStart& start) {
  RunOptions run;
  run.chains = kChains;
  run.warmup = kWarmup;
  run.seed = options.seed;
  run.threads = options.threads;
  run.keep = Keep::monitors;
  if (!start.states.empty()) {
    run.start = Start::given;
    for (std::size_t chain = 0; chain < kChains; ++chain) {
      const std::vector<Value>& state = start.states[chain % start.states.size()];
      run.given.insert(run.given.end(), state.begin(), state.end());
    }
  }
  return run;
}

}  // namespace

OptimizeAnswer find_best_draw(const Model& model, const OptimizeOptions& options, const OptimizeStart& start,
                              const OptimizeHooks& hooks) {
  const bool fixes =
      std::any_of(start.fixed.begin(), start.fixed.end(), [](const auto& level) { return level.has_value(); });
  if (fixes) throw InputError("--fix: variables of an RBM or a user target cannot be fixed");
  const Clock::time_point begun = Clock::now();
  OptimizeAnswer answer;
  answer.objective = "log_prob";
  Best best(options.solutions);
  std::atomic<bool> stop = false;
  std::uint64_t sweeps = 0;
  const auto interrupted = [&] { return hooks.stop != nullptr && *hooks.stop; };
  const auto is_over = [&] {
    const bool reached =
        options.target && !answer.history.empty() && answer.history.back().objective >= *options.target;
    return reached || interrupted() || (options.sweeps && sweeps >= *options.sweeps) ||
           (options.seconds && seconds_since(begun) >= *options.seconds);
  };
  const RunHooks run_hooks{.progress = [&](const Progress&) { stop = is_over(); }, .stop = &stop};
  Run run(model, parse_sampler("temper"), run_options(options, start), run_hooks);
  const auto look = [&] {
    const std::vector<double> log_prob = run.log_prob();
    if (std::none_of(log_prob.begin(), log_prob.end(), [&](double value) { return best.takes(value); })) return;
    const std::vector<Value> states = run.states();
    for (std::size_t chain = 0; chain < kChains; ++chain) {
      const std::size_t n = model.layout.variables;
      if (!best.add(log_prob[chain], std::span(states).subspan(chain * n, n))) continue;
      answer.history.push_back({seconds_since(begun), sweeps, log_prob[chain]});
    }
  };
  bool stopped = false;  // by the target
  try {
    look();
    run.warm_up();
    sweeps += kWarmup;
    look();
    while (!is_over()) {
      run.advance(run.engine().traits().steps_per_sweep);
      ++sweeps;
      look();
      if (!hooks.progress) continue;
      const double by_sweeps =
          options.sweeps ? static_cast<double>(sweeps) / static_cast<double>(*options.sweeps) : 0.0;
      const double by_clock = options.seconds ? seconds_since(begun) / *options.seconds : 0.0;
      hooks.progress(answer.history.back(), std::min(1.0, std::max(by_sweeps, by_clock)));
    }
  } catch (const RunStopped&) {
    stopped = true;
  }
  answer.solutions = best.take();
  if (answer.solutions.empty())
    throw InputError(fmt::format("{}: interrupted before there was a state to show", model.name));
  answer.reason = "the best state that chains came across, by replica exchange";
  answer.seconds = seconds_since(begun);
  answer.interrupted = stopped || interrupted();
  return answer;
}

}  // namespace poise
