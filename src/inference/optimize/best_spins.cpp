/// The best states of an Ising problem: elimination, enumeration, then searches side by side until a limit is reached.
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "base/thread_pool.hpp"
#include "inference/optimize/enumerate_spins.hpp"
#include "inference/optimize/free_flips.hpp"
#include "inference/optimize/spin_elimination.hpp"
#include "inference/optimize/spin_goal.hpp"
#include "inference/optimize/spin_reduction.hpp"
#include "inference/optimize/spin_search.hpp"

namespace poise {

namespace {

/// The best so far of all searches, and whether that is enough.
class SearchProgress {
 public:
  SearchProgress(const SpinGoal& goal, const SpinReduction& reduction, const OptimizeOptions& options,
                 const OptimizeHooks& hooks)
      : goal_(&goal), reduction_(&reduction), options_(&options), hooks_(&hooks) {}

  /// From any thread: a search has a better state than it had.
  void rise(const SearchRecord& record) {
    const double objective = goal_->objective_of(goal_->state_of(reduction_->expand(record.pool.best().spins)));
    const std::lock_guard lock(mutex_);
    if (!history_.empty() && !goal_->is_better(objective, history_.back().objective)) return;
    history_.push_back({seconds(), record.sweeps, objective});
    if (options_->target && !goal_->is_better(*options_->target, objective)) reached_ = true;
  }
  [[nodiscard]] bool is_over(std::uint64_t sweeps) const {
    return reached_ || interrupted() || (options_->sweeps && sweeps >= *options_->sweeps) ||
           (options_->seconds && seconds() >= *options_->seconds);
  }
  [[nodiscard]] bool interrupted() const { return hooks_->stop != nullptr && *hooks_->stop; }
  [[nodiscard]] bool reached() const { return reached_; }
  /// The part of the limit that is used up.
  [[nodiscard]] double done(std::uint64_t sweeps) const {
    const double by_sweeps =
        options_->sweeps ? static_cast<double>(sweeps) / static_cast<double>(*options_->sweeps) : 0.0;
    return std::min(1.0, std::max(by_sweeps, options_->seconds ? seconds() / *options_->seconds : 0.0));
  }
  [[nodiscard]] double seconds() const { return before_ + seconds_since(begun_); }
  [[nodiscard]] const std::vector<Improvement>& history() const { return history_; }

  void save(Saver& out) const { out(history_, seconds()); }
  void load(Loader& in) { in(history_, before_); }

 private:
  const SpinGoal* goal_;
  const SpinReduction* reduction_;
  const OptimizeOptions* options_;
  const OptimizeHooks* hooks_;
  Clock::time_point begun_ = Clock::now();
  double before_ = 0.0;  // seconds that a resumed search had taken
  std::mutex mutex_;
  std::vector<Improvement> history_;
  std::atomic<bool> reached_ = false;
};

/// A search with a record of its own.
struct Island {
  Island(const SpinProblem& problem, const OptimizeOptions& options, const StandardForm& form, std::uint64_t number)
      : record{SolutionPool(options.solutions, form), 0, {}, {}}, search(problem, options.seed, number) {}

  SearchRecord record;
  SpinSearch search;
};

std::vector<Spin> spins_of(std::span<const Value> levels) {
  std::vector<Spin> spins;
  for (const Value level : levels) spins.push_back(level != 0 ? 1 : -1);
  return spins;
}

/// What states of a core count as the same: those that stand for one state of the model, and those that flips of
/// components without a field lead to.
StandardForm form_of(const SpinGoal& goal, const SpinReduction& reduction) {
  if (goal.repairs) {
    return [&](std::int64_t /*value*/, std::span<Spin> spins) {
      const std::vector<Spin> form = reduction.restrict(spins_of(goal.state_of(reduction.expand(spins))));
      std::copy(form.begin(), form.end(), spins.begin());
      return reduction.core().value(spins);
    };
  }
  return [flips = FreeFlips(reduction.core())](std::int64_t value, std::span<Spin> spins) {
    flips.normalise(spins);
    return value;
  };
}

/// States that the core gets from those of the model.
std::vector<std::vector<Spin>> core_starts(const SpinReduction& reduction, const OptimizeStart& start) {
  std::vector<std::vector<Spin>> out;
  for (const std::vector<Value>& state : start.states) out.push_back(reduction.restrict(spins_of(state)));
  return out;
}

/// The search on as many threads as it may use, in rounds.
class Searches {
 public:
  Searches(const SpinProblem& core, const OptimizeOptions& options, const StandardForm& form, SearchProgress& progress)
      : progress_(&progress), pool_(threads_of(options)) {
    // A search that is to be reproducible is one search, whatever the number of threads.
    for (unsigned number = 0; number < (options.sweeps ? 1 : pool_.threads()); ++number) {
      islands_.push_back(std::make_unique<Island>(core, options, form, number));
      islands_.back()->record.risen = [&progress](const SearchRecord& record) { progress.rise(record); };
      islands_.back()->record.stop = [&progress](std::uint64_t sweeps) { return progress.is_over(sweeps); };
    }
  }

  void start_from(const std::vector<std::vector<Spin>>& states) {
    for (const std::vector<Spin>& spins : states) {
      for (const auto& island : islands_) island->search.start_from(spins, island->record);
    }
  }

  void run(const OptimizeHooks& hooks) {
    while (!progress_->is_over(sweeps())) {
      pool_.for_each(islands_.size(), [this](std::size_t k) { islands_[k]->search.round(islands_[k]->record); });
      share();
      if (hooks.progress) hooks.progress(progress_->history().back(), progress_->done(sweeps()));
      if (hooks.after_round) hooks.after_round([this] { return save(); });
    }
  }

  [[nodiscard]] std::uint64_t sweeps() const { return islands_.front()->record.sweeps; }
  /// The states of all searches together.
  void collect(SolutionPool& pool) const {
    for (const auto& island : islands_) {
      for (const SolutionPool::Entry& entry : island->record.pool.entries()) {
        pool.add(entry.value, entry.spins, entry.count);
      }
    }
  }

  [[nodiscard]] std::string save() const {
    Saver out;
    progress_->save(out);
    out(static_cast<std::uint64_t>(islands_.size()));
    for (const auto& island : islands_) {
      out(island->record.pool, island->record.sweeps);
      island->search.save(out);
    }
    return out.take();
  }
  /// With fewer threads than before, the searches beyond them end; with more, further ones begin.
  void load(std::string_view bytes) {
    Loader in(bytes);
    progress_->load(in);
    std::uint64_t count = 0;
    in(count);
    for (std::size_t k = 0; k < std::min<std::size_t>(count, islands_.size()); ++k) {
      in(islands_[k]->record.pool, islands_[k]->record.sweeps);
      islands_[k]->search.load(in);
    }
  }

 private:
  static unsigned threads_of(const OptimizeOptions& options) {
    return options.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : options.threads;
  }

  /// Each search gets to know the best state of the next one.
  void share() {
    if (islands_.size() < 2) return;
    for (std::size_t k = 0; k < islands_.size(); ++k) {
      const SolutionPool::Entry& best = islands_[(k + 1) % islands_.size()]->record.pool.best();
      islands_[k]->search.hear_of(best.value, best.spins, islands_[k]->record);
    }
  }

  SearchProgress* progress_;
  ThreadPool pool_;
  std::vector<std::unique_ptr<Island>> islands_;
};

std::vector<Solution> solutions_of(const SpinGoal& goal, const SpinReduction& reduction, const SolutionPool& pool) {
  std::vector<Solution> out;
  for (const SolutionPool::Entry& entry : pool.entries()) {
    Solution solution;
    solution.state = goal.state_of(reduction.expand(entry.spins));
    solution.objective = goal.objective_of(solution.state);
    solution.count = entry.count;
    out.push_back(std::move(solution));
  }
  std::stable_sort(out.begin(), out.end(),
                   [&](const Solution& a, const Solution& b) { return goal.is_better(a.objective, b.objective); });
  return out;
}

std::string reason_of_search(const SpinProblem& core, Index variables) {
  if (core.num_variables() == variables) return "found by annealing and replica exchange";
  return fmt::format("{} of {} variables were maximised out; annealing and replica exchange found the others",
                     variables - core.num_variables(), variables);
}

bool is_enumerable(const SpinProblem& core) { return core.num_variables() <= kMostEnumeratedSpins; }

/// The best state of a core that is small, or of small width: where that takes at most a fifth of a time limit.
std::optional<std::vector<Spin>> solve(const SpinProblem& core, const OptimizeOptions& options) {
  constexpr double kFraction = 0.2;
  if (!is_enumerable(core)) {
    const double seconds = options.seconds ? kFraction * *options.seconds : 1.0;
    return eliminate_spins(core, std::min(kMostEntries, kEntriesPerSecond * seconds));
  }
  SearchRecord record{SolutionPool(1), 0, {}, {}};
  enumerate_spins(core, FreeFlips(core), record);
  return record.pool.best().spins;
}

}  // namespace

OptimizeAnswer find_best_spins(const SpinGoal& goal, const OptimizeOptions& options, const OptimizeStart& start,
                               const OptimizeHooks& hooks) {
  const Index variables = goal.problem.num_variables();
  const auto solved = std::make_unique<SpinReduction>(goal.problem, goal.fixed, SpinReduction::Eliminate::yes);
  const std::optional<std::vector<Spin>> best = solve(solved->core(), options);
  const bool proves = best.has_value();
  // Elimination gives one of the states that agree in the core, so a list of several needs all variables.
  const auto listed = options.solutions > 1
                          ? std::make_unique<SpinReduction>(goal.problem, goal.fixed, SpinReduction::Eliminate::no)
                          : nullptr;
  const bool lists_all = listed == nullptr || is_enumerable(listed->core());
  const SpinReduction& reduction = listed != nullptr ? *listed : *solved;

  SearchProgress progress(goal, reduction, options, hooks);
  // One best state is repaired at the end. In a list every state counts as what it stands for.
  const StandardForm form = listed != nullptr ? form_of(goal, reduction) : StandardForm();
  SolutionPool pool(options.solutions, form);
  OptimizeAnswer answer;
  answer.objective = goal.objective;
  answer.maximise = goal.maximise;
  answer.optimal = proves;
  if (proves && lists_all) {
    SearchRecord record{pool, 0, [&](const SearchRecord& risen) { progress.rise(risen); }, {}};
    const bool enumerates = is_enumerable(reduction.core());
    if (enumerates) {
      enumerate_spins(reduction.core(), goal.repairs ? FreeFlips() : FreeFlips(reduction.core()), record);
    } else {
      record.add(reduction.core().value(*best), *best);
    }
    pool = std::move(record.pool);
    answer.reason = reduction.core().num_variables() == 0 || !enumerates
                        ? "all variables were maximised out one after another"
                        : fmt::format("all states of the {} variables that could not be maximised out were enumerated",
                                      reduction.core().num_variables());
  } else {
    Searches searches(reduction.core(), options, form, progress);
    if (!start.resumed.empty()) {
      searches.load(start.resumed);
    } else {
      searches.start_from(core_starts(reduction, start));
      if (proves) searches.start_from({reduction.restrict(solved->expand(*best))});
    }
    searches.run(hooks);
    searches.collect(pool);
    answer.reason = proves ? "maximising variables out one after another proves the best; a search found others"
                           : reason_of_search(reduction.core(), variables);
  }
  answer.solutions = solutions_of(goal, reduction, pool);
  if (proves && lists_all) {
    for (Solution& solution : answer.solutions) solution.count = 1;  // each was looked at once
  }
  if (answer.optimal) answer.bound = answer.best().objective;
  answer.history = progress.history();
  answer.seconds = progress.seconds();
  answer.interrupted = progress.interrupted();
  return answer;
}

}  // namespace poise
