/// How the most probable state of a network is found: exactly, or by search on what elimination leaves.
#include "inference/optimize_network.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <poise/extend/base/archive.hpp>
#include <poise/marginals.hpp>
#include "exact/collapse.hpp"
#include "exact/dominance.hpp"
#include "exact/level_symmetry.hpp"
#include "exact/max_product.hpp"
#include "exact/reduced_network.hpp"
#include "inference/fixed_levels.hpp"
#include "inference/network_search/proof.hpp"
#include "inference/network_search/search.hpp"
#include "report/text.hpp"

namespace poise {

namespace network_optimum {

namespace {

/// Parts of a limit of seconds that planning, an attempt at a proof, and the search before exact maximisation may take.
constexpr double kPlanning = 0.1;
constexpr double kBounding = 0.1;
constexpr double kSearchFirst = 0.1;
/// The same search beside the time that exact maximisation is expected to take, and its sweeps.
constexpr double kSearchBesideExact = 0.5;
constexpr double kFirstSweeps = 400.0;
/// Exact maximisation comes first where it is expected to take so many seconds, by an order of elimination that was
/// found by so many looks at edges for each variable.
constexpr double kQuick = 0.3;
constexpr double kQuickLooks = 4000.0;
/// Branch and bound without a search comes before that, for this part of the time that it is expected to take, where
/// that is more than an instant, and for so many seconds at most; and how many table entries it looks at in a second.
constexpr double kTreeBesideExact = 0.5;
constexpr double kQuickTree = 0.15;
constexpr double kInstant = 0.005;
constexpr double kTreeLooksPerSecond = 1.5e8;
/// A search for a better order, and for slices, cannot be expected to make it so many times as fast.
constexpr double kWorthPlanning = 100.0;
/// Exact maximisation is tried where it is expected to take this part of what is left: estimates are right within a
/// factor of two.
constexpr double kExact = 0.7;
/// What it may take where sweeps are the limit, which says nothing of it.
constexpr double kPatience = 60.0;
/// Max-product beside sums and marginals: one pass instead of two, without exponentials (12 s of 50 on BN_97).
constexpr double kMaximising = 0.25;
/// Tables that variables are eliminated in before a search: a variable of two levels with five neighbours.
constexpr double kMostCollapsed = 64.0;
/// Table entries that an attempt at a proof looks at: in a second, and where sweeps are the limit, for each entry that
/// one chain of the search looks at.
constexpr double kOperationsPerSecond = 4e8;
constexpr double kOperationsPerLook = 1.0;
/// The tree looks at as many table entries as all chains together, and at fewer while its turns do not close this part
/// of the gap, down to a least share.
constexpr double kTreeProgress = 0.01;
constexpr double kLeastTreeShare = 0.25;
/// Searches that follow each other draw different numbers.
constexpr std::uint64_t kSeedOfSweep = 0x9e3779b97f4a7c15;
/// States beyond those that are wanted, because some are the same up to an exchange of levels.
constexpr double kMostRanked = 100000.0;
constexpr double kMostCopiesOfSearch = 24.0;
/// An attempt waits until the search has taken so many times as long as the one before.
constexpr double kSearchToProof = 3.0;

/// Where equal objectives may differ by rounding.
double rounding_of(double objective) { return 1e-9 * (1.0 + std::abs(objective)); }

class NetworkOptimum {
 public:
  NetworkOptimum(const Model& model, const Network& network, const OptimizeOptions& options, const OptimizeStart& start,
                 const OptimizeHooks& hooks)
      : model_(model),
        options_(options),
        hooks_(hooks),
        network_(with_fixed_levels(network, start.fixed)),
        symmetry_(options.solutions > 1 ? std::optional(LevelSymmetry(network_)) : std::nullopt),
        possible_(network_),
        reduced_(options.solutions > 1 ? possible_.network : without_dominated_levels(possible_.network)) {
    if (!start.resumed.empty()) {
      std::vector<Value> best;
      Loader in(start.resumed);
      in(answer_.history, before_, swept_, best);
      add_start(best);
    }
    if (options.seconds || !options.sweeps) {
      seconds_ = options.seconds.value_or(10.0);
      deadline_ = started_ + duration_of(std::clamp(seconds_ - before_, 0.0, 3e8));
    }
    for (const std::vector<Value>& state : start.states) add_start(state);
    answer_.model = model.name;
    answer_.objective = "log_prob";
  }

  OptimizeAnswer find() && {
    ExactPlan plan;
    plan.tree = plan_elimination(reduced_.network,
                                 {.memory_limit = options_.memory_limit,
                                  .most_looks = kQuickLooks * std::max<double>(1.0, reduced_.network.num_variables())});
    const bool fits = plan.fits(options_.memory_limit);
    const double exact_seconds = fits ? expected(plan) : std::numeric_limits<double>::infinity();
    const double tree_seconds = std::min(kTreeBesideExact * exact_seconds, kQuickTree);
    if (options_.solutions <= 1 && exact_seconds >= kInstant && branch(tree_seconds * kTreeLooksPerSecond)) {
      return finish();
    }
    if (exact_seconds <= kQuick && maximise(plan)) return finish();
    // A proof by bounds may take less than the junction tree, and whatever comes of it is there if time runs out.
    const double most = has_deadline() ? kSearchFirst * left() : kPatience;
    try {
      search(std::min(most, kSearchBesideExact * exact_seconds), kFirstSweeps);
    } catch (const InputError&) {
      // Where zeros leave few states a search may meet none: what comes now has the last word.
    }
    if (over()) return finish();
    const double patience = has_deadline() ? kExact * left() : kPatience;
    if (plan.tree.complete && expected(plan) <= kWorthPlanning * patience) {
      PlanOptions planning{.memory_limit = options_.memory_limit};
      if (has_deadline()) planning.seconds = kPlanning * left();
      plan = plan_exact(reduced_.network, planning);
    }
    const bool exact = plan.fits(options_.memory_limit) && expected(plan) <= patience;
    if (exact && maximise(plan)) return finish();
    const bool sweeps_left =
        answer_.solutions.empty() || !options_.sweeps || swept_ < static_cast<double>(*options_.sweeps);
    if (!over() && sweeps_left) search(left(), std::numeric_limits<double>::infinity());
    if (answer_.reason.empty())
      answer_.reason = fmt::format("by search: exact maximisation would take {}", exact_cost(plan));
    return finish();
  }

 private:
  /// Seconds of exact maximisation, on all threads; on one where the answer must not depend on their number.
  [[nodiscard]] double expected(const ExactPlan& plan) const {
    const unsigned all = options_.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : options_.threads;
    return kMaximising * plan.seconds() / (options_.sweeps ? 1 : all);
  }
  static Clock::duration duration_of(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  /// Seconds, those of a search that this one continues included.
  [[nodiscard]] double elapsed() const { return before_ + seconds_since(started_); }
  void add_start(const std::vector<Value>& state) {
    if (state.size() != network_.num_variables()) {
      throw InputError(
          fmt::format("a state to start from has {} variables, the model {}", state.size(), network_.num_variables()));
    }
    const std::vector<Index> levels(state.begin(), state.end());
    starts_.push_back(reduced_.reduced_state(possible_.reduced_state(levels)));
  }
  [[nodiscard]] bool has_deadline() const { return deadline_ != Clock::time_point::max(); }
  [[nodiscard]] double left() const { return std::max(0.0, seconds_ - elapsed()); }
  [[nodiscard]] bool stopped() const { return hooks_.stop != nullptr && hooks_.stop->load(); }
  /// Whether there is an answer, and no time for a better one.
  [[nodiscard]] bool over() const {
    if (answer_.solutions.empty()) return false;
    const bool reached = options_.target && answer_.best().objective >= *options_.target;
    // A list wants more than the one state that is proved.
    return (answer_.optimal && options_.solutions <= 1) || reached || stopped() ||
           (has_deadline() && Clock::now() >= deadline_);
  }

  void tell(double done) const {
    if (hooks_.progress && !answer_.history.empty()) hooks_.progress(answer_.history.back(), done);
  }

  /// False where there was no time to end.
  bool maximise(const ExactPlan& plan) {
    ExactOptions exact;
    exact.memory_limit = options_.memory_limit;
    exact.threads = options_.threads;
    exact.progress = [&](double done) {
      tell(done);
      return !stopped() && !(has_deadline() && Clock::now() >= deadline_);
    };
    try {
      std::vector<RankedState> states = most_probable_states(reduced_.network, plan, with_copies(kMostRanked), exact);
      answer_.solutions.clear();
      for (const RankedState& state : states) add_solution(original_state(state.levels), 1);
    } catch (const ExactStopped&) {
      return false;
    }
    note_best(0);
    answer_.optimal = true;
    keep_distinct();
    for (Solution& solution : answer_.solutions) solution.count = 1;
    answer_.bound = answer_.best().objective;
    answer_.reason = fmt::format("exact: max-product takes {}", exact_cost(plan));
    return true;
  }

  /// So many states that those that are wanted are among them if some are the same.
  [[nodiscard]] std::size_t with_copies(double most) const {
    const auto wanted = static_cast<double>(std::max<std::size_t>(1, options_.solutions));
    return static_cast<std::size_t>(std::max(wanted, std::min(most, wanted * (symmetry_ ? symmetry_->copies() : 1.0))));
  }
  /// Of the states that exchanges of levels lead to one stays, and of all no more than are wanted.
  void keep_distinct() {
    if (!symmetry_) return;
    std::vector<Solution> kept;
    std::map<std::vector<Index>, std::size_t> known;
    for (Solution& solution : answer_.solutions) {
      std::vector<Index> levels(solution.state.begin(), solution.state.end());
      symmetry_->normalise(levels);
      const auto [entry, is_new] = known.emplace(levels, kept.size());
      if (!is_new) {
        kept[entry->second].count += solution.count;
        continue;
      }
      solution.state.assign(levels.begin(), levels.end());
      kept.push_back(std::move(solution));
    }
    if (kept.size() > options_.solutions) kept.resize(options_.solutions);
    answer_.solutions = std::move(kept);
  }

  [[nodiscard]] std::vector<Index> original_state(const std::vector<Index>& levels) const {
    return possible_.original_state(reduced_.original_state(levels));
  }

  void add_solution(const std::vector<Index>& levels, std::uint64_t count) {
    Solution solution;
    solution.objective = log_value(network_, levels) + model_.log_constant;
    solution.state.assign(levels.begin(), levels.end());
    solution.count = count;
    answer_.solutions.push_back(std::move(solution));
  }

  void note_best(std::uint64_t sweeps) {
    const double objective = answer_.best().objective;
    if (!answer_.history.empty() && objective <= answer_.history.back().objective) return;
    answer_.history.push_back({elapsed(), sweeps, objective});
  }

  /// What a later search continues with: the best state, in new chains.
  [[nodiscard]] std::string saved(const std::vector<Index>& best) const {
    Saver out;
    out(answer_.history, elapsed(), swept_, std::vector<Value>(best.begin(), best.end()));
    return out.take();
  }

  /// What is left when variables are eliminated in small tables.
  [[nodiscard]] Collapse collapsed() const {
    return Collapse(
        reduced_.network,
        {.most_entries = kMostCollapsed, .memory_limit = options_.memory_limit / 4.0, .reduction = Reduction::max});
  }
  [[nodiscard]] std::vector<Index> original(const Collapse& collapse, std::span<const Value> core) const {
    Rng rng(0, 0);  // nothing is left to chance in levels that are maxima
    std::vector<Value> levels(reduced_.network.num_variables());
    collapse.draw(core, rng, levels, {});
    return original_state(std::vector<Index>(levels.begin(), levels.end()));
  }

  /// Branch and bound alone. False where it does not end within so many looks at table entries.
  bool branch(double looks) {
    try {
      const Collapse collapse = collapsed();
      network_search::BranchAndBound tree(collapse.core(), options_.memory_limit / 4.0);
      const auto halt = [this] { return stopped() || (has_deadline() && Clock::now() >= deadline_); };
      if (!tree.search({.looks = looks, .halt = halt}) || !tree.best()) return false;
      add_solution(original(collapse, *tree.best()), 1);
    } catch (const InputError&) {  // the exact answer says why there is none
      return false;
    }
    note_best(0);
    answer_.optimal = true;
    answer_.bound = answer_.best().objective;
    answer_.reason = "proved by branch and bound";
    return true;
  }

  /// The best of chains on what is left when variables are eliminated in small tables, for so long at most.
  void search(double seconds, double sweeps) {
    Clock::time_point until = deadline_;
    if (has_deadline()) {
      until = std::min(until, Clock::now() + duration_of(seconds));
    }
    const Collapse collapse = collapsed();
    const double constant =
        possible_.log_constant + reduced_.log_constant + collapse.log_constant() + model_.log_constant;
    const Network& core = collapse.core();
    for (const Solution& solution : answer_.solutions) add_start(solution.state);
    answer_.solutions.clear();
    if (core.num_variables() == 0) {
      add_solution(original(collapse, {}), 1);
      note_best(0);
      answer_.optimal = true;
      answer_.bound = answer_.best().objective;
      return;
    }
    std::vector<std::vector<Value>> starts;
    for (const std::vector<Index>& start : starts_) {
      starts.emplace_back();
      for (const Index i : collapse.kept()) starts.back().push_back(static_cast<Value>(start[i]));
    }
    const network_search::LogNetwork logs(core);
    std::optional<double> sweeps_now;
    if (options_.sweeps) sweeps_now = std::min(sweeps, std::max(1.0, static_cast<double>(*options_.sweeps) - swept_));
    network_search::Proof proof(core, proof_options(until, sweeps_now.value_or(0.0) * logs.sweep_looks()));
    network_search::Scored better;  // than what chains have, by proofs
    better.value = kMinusInfinity;
    Attempts attempts;
    double tree_share = 1.0;
    network_search::SearchOptions search;
    search.sweeps = sweeps_now;
    search.halt = {until, hooks_.stop};
    if (options_.target) search.target = *options_.target - constant;
    search.solutions = with_copies(kMostCopiesOfSearch * static_cast<double>(options_.solutions));
    search.memory = options_.memory_limit / 4.0;
    search.seed = options_.seed + kSeedOfSweep * static_cast<std::uint64_t>(swept_);
    search.threads = options_.threads;
    const double before = swept_;
    const auto note = [&](double objective) {
      if (!answer_.history.empty() && objective <= answer_.history.back().objective + rounding_of(objective)) return;
      answer_.history.push_back({elapsed(), static_cast<std::uint64_t>(swept_), objective});
    };
    search.progress = [&](const network_search::Scored& best, double of_search, double done) {
      const double looks = (before + of_search - swept_) * logs.sweep_looks() * network_search::kChains;
      swept_ = before + of_search;
      const bool is_possible = logs.is_possible(best.x);
      if (is_possible) note(best.value + constant);
      const double by_clock = has_deadline() ? elapsed() / seconds_ : 0.0;
      tell(std::min(1.0, std::max(done, by_clock)));
      if (!is_possible) return true;
      if (answer_.optimal) {  // only the list of others becomes longer
        if (hooks_.after_round) hooks_.after_round([&] { return saved(original(collapse, best.x)); });
        return true;
      }
      const double known = std::max(best.value, better.value);
      const double bound_before = proof.bound();
      const network_search::Proof::Outcome outcome = attempts.is_due(known, has_deadline())
                                                         ? attempts.make(proof, known)
                                                         : proof.search_tree(known, tree_share * looks);
      const bool rises =
          !std::isfinite(bound_before) || bound_before - proof.bound() > kTreeProgress * (bound_before - known);
      tree_share = rises ? 1.0 : std::max(kLeastTreeShare, 0.5 * tree_share);
      if (!outcome.better.empty()) {
        better = {outcome.better, logs.value(outcome.better)};
        note(better.value + constant);
      }
      lower_bound(proof.bound() + constant);
      const std::vector<Value>& leader = better.value > best.value ? better.x : best.x;
      if (hooks_.after_round) hooks_.after_round([&] { return saved(original(collapse, leader)); });
      answer_.optimal = outcome.proved;
      const bool reached = search.target && better.value >= *search.target;
      return (!outcome.proved || options_.solutions > 1) && !reached;
    };
    const std::vector<network_search::Found> all = network_search::search(logs, starts, search);
    if (!better.x.empty()) add_solution(original(collapse, better.x), 1);
    for (const network_search::Found& found : all) {
      if (!logs.is_possible(found.state.x) || found.state.x == better.x) continue;
      add_solution(original(collapse, found.state.x), found.count);
    }
    std::stable_sort(answer_.solutions.begin(), answer_.solutions.end(),
                     [](const Solution& a, const Solution& b) { return a.objective > b.objective; });
    keep_distinct();
    if (answer_.solutions.size() > std::max<std::size_t>(1, options_.solutions)) answer_.solutions.pop_back();
    const double best = answer_.best().objective;
    answer_.optimal = answer_.optimal || (answer_.bound && best >= *answer_.bound - rounding_of(best));
    if (!answer_.optimal) return;
    answer_.bound = best;
    answer_.reason =
        "by search, and proved: costs were shifted, levels ruled out, and the rest solved exactly or by branch and "
        "bound";
  }

  /// When the next attempt at a proof is due: only for a better state than the last one was made for. Where the answer
  /// must not depend on the clock, after 1, 2, 4, ... rounds.
  struct Attempts {
    double value = kMinusInfinity;
    double took = 0.0;
    Clock::time_point last = Clock::now();
    std::size_t rounds = 0;

    bool is_due(double best, bool by_clock) {
      ++rounds;
      if (best <= value) return false;
      if (by_clock ? seconds_since(last) < kSearchToProof * took : !std::has_single_bit(rounds)) return false;
      value = best;
      return true;
    }
    network_search::Proof::Outcome make(network_search::Proof& proof, double log_value) {
      const Clock::time_point begins = Clock::now();
      network_search::Proof::Outcome outcome = proof.attempt(log_value);
      took = seconds_since(begins);
      last = Clock::now();
      return outcome;
    }
  };

  [[nodiscard]] network_search::ProofOptions proof_options(Clock::time_point until, double looks) const {
    network_search::ProofOptions proof{.memory = options_.memory_limit / 4.0, .threads = options_.threads};
    const double share = std::min(kBounding * seconds_, std::chrono::duration<double>(until - Clock::now()).count());
    proof.operations = has_deadline() ? share * kOperationsPerSecond : kOperationsPerLook * looks;
    proof.seconds = has_deadline() ? share : kPatience;
    proof.halt = [this, until] { return stopped() || (has_deadline() && Clock::now() >= until); };
    return proof;
  }

  void lower_bound(double bound) {
    if (std::isfinite(bound)) answer_.bound = std::min(answer_.bound.value_or(bound), bound);
  }

  OptimizeAnswer finish() {
    // Rounding of the bound is not to put it below a state that exists.
    if (answer_.bound) answer_.bound = std::max(*answer_.bound, answer_.best().objective);
    if (answer_.history.empty() || answer_.history.back().objective != answer_.best().objective) note_best(0);
    answer_.interrupted = stopped();
    if (answer_.reason.empty()) answer_.reason = "by search";
    answer_.seconds = elapsed();
    return std::move(answer_);
  }

  const Model& model_;
  const OptimizeOptions& options_;
  const OptimizeHooks& hooks_;
  const Clock::time_point started_ = Clock::now();
  Clock::time_point deadline_ = Clock::time_point::max();
  double seconds_ = std::numeric_limits<double>::infinity();
  const Network network_;
  const std::optional<LevelSymmetry> symmetry_;  ///< where several states are wanted
  const ReducedNetwork possible_;                ///< without what zeros rule out
  const ReducedNetwork reduced_;                 ///< and, where one best state is enough, without dominated levels
  std::vector<std::vector<Index>> starts_;
  double before_ = 0.0;  ///< seconds that a resumed search had taken
  double swept_ = 0.0;   ///< sweeps of each chain of the searches so far
  OptimizeAnswer answer_;
};

}  // namespace

}  // namespace network_optimum

OptimizeAnswer find_best_of_network(const Model& model, const Network& network, const OptimizeOptions& options,
                                    const OptimizeStart& start, const OptimizeHooks& hooks) {
  return network_optimum::NetworkOptimum(model, network, options, start, hooks).find();
}

}  // namespace poise
