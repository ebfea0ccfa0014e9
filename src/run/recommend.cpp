/// Samplers by kind of model, and verdicts on what was watched.
#include "run/recommend.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include <poise/extend/engines/division.hpp>
#include <poise/extend/engines/samplers.hpp>
#include "engines/rows.hpp"
#include "exact/block_laws.hpp"
#include "exact/dominance.hpp"
#include "exact/junction_tree.hpp"
#include "models/as_network.hpp"
#include "models/user/batch_target.hpp"
#include "run/quench.hpp"
#include "run/start.hpp"

namespace poise {

namespace {

/// Variables of a model beyond which no junction tree is looked for, unless zeros call for one.
constexpr Index kMostPlanned = 4096;
/// States up to which exact draws are taken without a look at others: they take no time at all.
constexpr double kSmall = 16777216.0;
/// Seconds that making a junction tree may take: next to nothing, and the most where there is no time limit. The
/// fraction of a limit that it may take, where zeros may block single changes as much as a warm-up, and that the search
/// for it may. And bytes.
constexpr double kFreeSeconds = 0.05;
constexpr double kMostSeconds = 5.0;
constexpr double kTreeFraction = 0.2;
constexpr double kBlockedTreeFraction = 0.5;
constexpr double kSearchFraction = 0.05;
constexpr double kWorstOrder = 1000.0;
constexpr double kMostBytes = 2147483648.0;
/// A level that may take the place of others, where tables have zeros, and is as probable is drawn in the hundred
/// sweeps that are the least of a watch.
constexpr double kLeastRatio = 0.01;
/// Operations of a junction tree, roughly a nanosecond each, that are nothing beside a run.
constexpr double kPartOperations = 2e7;
/// Chains that disagree by more after half of the warm-up are stuck. Slow chains of one mode were seen at 1.1 to 1.3,
/// where tempering gains nothing.
constexpr double kStuck = 1.3;
/// Chains of scouts, whose random numbers no chain of a run has, and variables up to which they take no time.
constexpr std::size_t kScouts = 16;
constexpr std::uint64_t kFirstScout = std::uint64_t{1} << 40;
/// How many times as far as the chains they may go. One of many takes longer than four chains to forget where it began.
constexpr std::uint64_t kScoutsLonger = 4;
/// And where time is limited and a ladder, which costs several times as much a draw, leaves fewer effective ones: while
/// four times as many steps take a third off what they disagree by.
constexpr std::uint64_t kScoutsLongest = 16;
constexpr double kFalling = 0.7;
constexpr Index kMostScouted = 20000;
/// Steps between two points of a rival: chains that have settled by them have one effective sample in fifty steps. Its
/// chains, and all steps of one, warm-up included.
constexpr std::uint64_t kRivalSpacing = 4;
constexpr std::size_t kMostRivals = 16;
constexpr std::uint64_t kRivalSteps = (2 + kRivalSpacing) * Watch::kPoints;
/// The cost of a step is the least of so many measurements. What costs less than so many times as much as another is
/// not worth a short run of that, whose steps change one variable; what costs as much as this fraction of its sweep is
/// worth none itself.
constexpr int kTimed = 4;
constexpr double kCostly = 4.0;
constexpr double kTooCostly = 0.5;
/// A draw by a ladder takes four to eight times as long as a sweep of chains across lanes, so it can only gain where a
/// sweep gives fewer effective samples than this. Where time is limited, a short ladder shows what it gives: for this
/// fraction of the limit, with so many draws of warm-up, and if it gives so many times as many a second.
constexpr double kLadderMayGain = 0.1;
constexpr double kLadderFraction = 0.06;
constexpr std::size_t kLadderWarmup = 256;
constexpr double kLadderGain = 1.25;
/// Effective samples of a point up to which points farther apart show more of a run of limited time: each is one at
/// most.
constexpr double kPreciseEss = 0.25;
/// Seconds that measure what a step takes.
constexpr double kEnoughSeconds = 2e-3;
/// Fractions of a limit in seconds: a watch takes no more of it, and as much before tempering replaces chains that have
/// not settled. Its replicas cost what ten to thirty chains do, so chains that have settled in a tenth of the time give
/// more in the rest.
constexpr double kLongestWatch = 0.2;
constexpr double kShortestWatch = 0.1;
/// A sweep of calls that takes more of a limit than this is not made, for it cannot be broken off; half of the limit
/// then has so many draws.
constexpr double kLongestSweep = 0.02;
constexpr double kDrawsInLimit = 200.0;
/// Points that are the least to judge by.
constexpr std::size_t kFewestPoints = 32;

/// A junction tree that draws can be had from.
struct Tree {
  double seconds;          ///< to make it
  double draw_operations;  ///< of about a nanosecond each

  [[nodiscard]] bool is_free() const { return seconds <= kFreeSeconds; }
};

/// The tree of a model, if it takes no longer than `most` seconds. The first order that is found may take hundreds
/// of times as long as a good one, for which `search` seconds are spent, by count and not by the clock: ranks agree.
std::optional<Tree> find_tree(const Network& network, double most, double search) {
  // A nanosecond for an operation, and draws take one of two passes.
  const auto seconds = [](const EliminationPlan& plan) { return 0.5e-9 * plan.operations; };
  EliminationPlan plan = plan_elimination(network, 0.0);
  if (search > 0.0 && plan.complete && seconds(plan) > most && seconds(plan) < kWorstOrder * most) {
    plan = plan_elimination(network, {.memory_limit = kMostBytes, .most_looks = search / 5e-9});
  }
  if (!plan.complete || plan.bytes > kMostBytes || seconds(plan) > most) return std::nullopt;
  return Tree{seconds(plan), plan.draw_operations};
}

// Effective samples a sweep of Gibbs below which others give more a second, by draws a second of `poise sample` with
// four chains on one thread. A draw of Wolff's takes as long as a sweep across lanes and six times as long as one of
// bits. It is worth half an independent one of two levels, a third of three and a fifth of six, by log p, which is the
// slowest. Lanes are shared by up to sixteen chains.
double lane_share(std::size_t chains) { return 4.0 / static_cast<double>(std::clamp<std::size_t>(chains, 4, 16)); }

double least_for_clusters(const Model& model, std::size_t chains) {
  return has_bits(model) ? 0.09 : lane_share(chains) / model.layout.levels(0);
}

double least_for_exact(const Model& model, const Network& tables, const Tree& tree, std::size_t chains) {
  double sweep = 0.0;  // operations, as those of a draw
  if (has_bits(model)) {
    sweep = 1.7 * static_cast<double>(model.layout.variables);
  } else {
    for (const Index i : tables.scopes) sweep += (is_ising(model) ? 0.35 : 1.0) * tables.levels(i);
  }
  return lane_share(chains) * sweep / tree.draw_operations;
}

std::shared_ptr<const Network> try_network(const Model& model) {
  const bool is_network = std::holds_alternative<NetworkDescription>(model.description);
  if (!is_network && model.layout.variables > kMostPlanned) return nullptr;
  try {
    return as_network(model);
  } catch (const InputError&) {
    return nullptr;  // couplings that no table holds
  }
}

/// Whether tables of the model, if there are any, hold log p of all its states.
bool has_no_factors(const Model& model) {
  return is_rbm(model) || std::holds_alternative<CallbackDescription>(model.description) ||
         std::holds_alternative<std::shared_ptr<const SelectionTarget>>(model.description);
}

/// The cost of a step, by the clock, of as many steps as take a while.
double seconds_of_step(Run& run) {
  for (std::uint64_t steps = 1;; steps *= 4) {
    const auto begun = std::chrono::steady_clock::now();
    run.advance(steps);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    if (took.count() >= kEnoughSeconds || run.ended()) return took.count() / static_cast<double>(steps);
  }
}

/// The sampler that chains begin with.
Advice local_advice(const Model& model) {
  if (const auto* callback = std::get_if<CallbackDescription>(&model.description)) {
    const BatchFunction& function = callback->target->function();
    const Advice::Replacement gibbs{parse_sampler(GibbsRow::name),
                                    "a call for all changes takes as long as many calls for one"};
    if (function.has_gradient()) {
      Advice advice{parse_sampler(DlsbRow::name), "one gradient lets it change many variables a step"};
      advice.cheaper = gibbs;
      return advice;
    }
    if (function.has_log_ratios()) {
      Advice advice{parse_sampler(LbRow::name), "one call gives the ratios of all single changes"};
      advice.finds_thin = true;
      advice.rival = {parse_sampler(DlsbRow::name),
                      "one call gives the ratios of all single changes, and many changes can be made at once"};
      advice.cheaper = gibbs;
      return advice;
    }
  }
  if (std::holds_alternative<std::shared_ptr<const SelectionTarget>>(model.description)) {
    return {parse_sampler(WeightedGibbsRow::name),
            "all flip ratios are known at once, and it flips the uncertain variables"};
  }
  if (is_rbm(model)) return {parse_sampler(RbmGibbsRow::name), "the units of a layer are independent given the other"};
  return {parse_sampler(GibbsRow::name), "its chains mix, and none of its updates is rejected"};
}

}  // namespace

Advice recommend(const Model& model, const RunOptions& options, bool is_watched) {
  const Device device = options.device == Device::cuda ? Device::cuda : Device::cpu;
  const auto runs = [&](const char* name) { return why_not(device, model, parse_sampler(name)).empty(); };
  const std::shared_ptr<const Network> tables = try_network(model);
  const bool may_block = tables != nullptr && tables->has_zeros() && !single_changes_connect(*tables, kLeastRatio);
  std::optional<Tree> tree;
  const bool may_plan = tables != nullptr && (may_block || model.layout.variables <= kMostPlanned);
  const bool has_clusters = runs(WolffRow::name);
  if (may_plan && runs(ExactRow::name)) {
    // Clusters do as well as a tree that takes a while.
    double most = has_clusters ? kFreeSeconds : kMostSeconds;
    if (options.seconds > 0.0)
      most = std::min(most, (may_block ? kBlockedTreeFraction : kTreeFraction) * options.seconds);
    tree = find_tree(*tables, most, has_clusters ? 0.0 : kSearchFraction * options.seconds);
  }
  const char* const independent = has_no_factors(model)
                                      ? "its states are few enough to enumerate, and its draws are independent"
                                      : "a junction tree is cheap, and its draws are independent";
  if (tree && may_block) {
    return {parse_sampler(ExactRow::name),
            "zeros in tables may block single changes, and draws by a junction tree are independent"};
  }
  if (tree && tree->is_free() && (number_of_states(model) <= kSmall || !is_watched)) {
    return {parse_sampler(ExactRow::name), independent};
  }
  if (may_block && runs(TemperRow::name)) {
    return {parse_sampler(TemperRow::name), "zeros in tables may block single changes, and tempering gets around them"};
  }
  Advice advice = local_advice(model);
  if (!runs(advice.sampler.name.c_str())) advice = {parse_sampler(GibbsRow::name), "it runs there"};
  if (device != Device::cpu) advice.cheaper.reset();
  if (!is_watched) return advice;
  advice.tables = tables;
  const auto replace_by = [&](const char* name, const char* reason, double least_ess) {
    advice.next = {parse_sampler(name), reason};
    advice.is_cheap = least_ess > 0.0;
    advice.least_ess = least_ess;
  };
  if (tree) {
    // A tree that takes a while replaces only chains that are stuck, unless there is time for it.
    const bool is_cheap = tree->is_free() || options.seconds > 0.0;
    const double left = options.seconds > 0.0 ? std::max(0.0, 1.0 - tree->seconds / options.seconds) : 1.0;
    replace_by(ExactRow::name, independent,
               is_cheap ? left * least_for_exact(model, *tables, *tree, options.chains) : 0.0);
  } else if (has_clusters) {
    replace_by(WolffRow::name, "chains of single changes mixed slowly, and cluster moves mix faster",
               least_for_clusters(model, options.chains));
  } else if (runs(TemperRow::name)) {
    replace_by(TemperRow::name, "the chains of the local sampler disagreed, and parallel tempering crosses barriers",
               0.0);
  }
  return advice;
}

void fit_to_limit(const Model& model, const RunOptions& options, Advice& advice) {
  const auto* callback = std::get_if<CallbackDescription>(&model.description);
  if (callback == nullptr || options.seconds <= 0.0 || options.device == Device::cuda) return;
  std::vector<Value> rows;
  for (std::uint64_t c = 0; c < options.chains; ++c) {
    Rng rng = make_rng(options.seed, Stream::start, options.first_chain + c);
    const std::vector<Value> x = uniform_state(model, rng);
    rows.insert(rows.end(), x.begin(), x.end());
  }
  double call = std::numeric_limits<double>::infinity();
  for (int k = 0; k < 2; ++k) {  // code may be compiled when it is first called
    const auto begun = std::chrono::steady_clock::now();
    (void)callback->target->log_probs(rows);
    call = std::min(call, std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
  }
  const auto sweep = static_cast<double>(model.layout.variables);  // calls
  if (sweep * call < kLongestSweep * options.seconds) return;
  advice.cheaper.reset();
  advice.next.reset();  // a step of a ladder is a sweep
  const Sampler blocks = parse_sampler("gibbs:block=2");
  if (!is_row<GibbsRow>(advice.sampler) || !why_not(Device::cpu, model, blocks).empty()) return;
  advice.sampler = blocks;
  advice.reason = "a sweep of calls would take too much of the time limit, so two variables change at a time";
  const double steps = 0.5 * options.seconds / (call * kDrawsInLimit);
  advice.thin = static_cast<std::uint64_t>(std::clamp(std::floor(steps), 1.0, sweep));
}

std::vector<std::string> local_samplers(const Model& model) {
  std::vector<std::string> names = {local_advice(model).sampler.name};
  if (why_not(Device::cpu, model, parse_sampler(WolffRow::name)).empty()) names.emplace_back(WolffRow::name);
  return names;
}

Watcher::Watcher(Advice advice, const Model& model, const RunOptions& options, std::uint64_t sweep,
                 std::uint64_t warmup)
    : advice_(std::move(advice)),
      model_(model),
      chains_(options.chains),
      seed_(options.seed),
      seconds_(options.seconds),
      threads_(options.threads),
      watch_(model, options.chains, advice_.finds_thin ? 1 : sweep),
      sweep_(sweep),
      last_step_(warmup / 2) {}

std::optional<Advice> Watcher::advice_for(const Sampler& sampler) const {
  Advice rest = advice_;
  for (const auto& local : {advice_.cheaper, advice_.rival}) {
    if (local && sampler.name == local->sampler.name) rest.sampler = local->sampler, rest.reason = local->reason;
  }
  if (rest.sampler.name == advice_.sampler.name) return std::nullopt;
  rest.rival.reset();
  rest.cheaper.reset();
  rest.finds_thin = false;
  return rest;
}

bool Watcher::is_last(std::uint64_t step, std::optional<double> spent) const {
  if (spent && *spent >= kLongestWatch) return true;
  const bool waits = spent && *spent < kShortestWatch && advice_.next && !advice_.is_cheap;
  return step >= last_step_ && !waits;
}

Watcher::Verdict Watcher::look(const Engine& engine, std::uint64_t step, std::optional<double> spent) {
  if (step == watch_.next()) watch_.record(engine);
  // Ranks may not differ, and their clocks do.
  const bool has_clock = advice_.cheaper && seconds_ > 0.0 && engine.division() == nullptr;
  if (has_clock && !cost_ && cheaper_wins(engine, step, nullptr)) return replace_by(*advice_.cheaper);
  const bool last = is_last(step, spent);
  if (!last && !watch_.is_full()) return Verdict::undecided;
  if (watch_.points() < kFewestPoints) return Verdict::keep;
  const bool hurry = spent && *spent >= kLongestWatch;
  const Watch::Look seen = watch_.look();
  settled_ = seen.settled;
  if (has_clock && (last || seen.settled) && cheaper_wins(engine, step, &seen)) return replace_by(*advice_.cheaper);
  if (advice_.rival && (last || seen.settled) && (!hurry || step >= kRivalSteps) && rival_wins(seen, engine)) {
    return replace_by(*advice_.rival);
  }
  bool ends = last || seen.settled;
  if (advice_.next) {
    const double ess = seen.ess_per_step * static_cast<double>(sweep_);
    // Two standard errors of the logarithm of an ESS. Chains that disagree are slow whatever theirs is.
    const double doubt = last || seen.r_hat > kStuck ? 1.0 : std::exp(2.0 * std::sqrt(7.0 / seen.ess));
    const bool slow = ess * doubt < advice_.least_ess;
    ends = last || (seen.settled && ess >= advice_.least_ess * doubt);
    const bool unsettled = last && !seen.settled && (advice_.is_cheap || step > last_step_);
    const bool replaced =
        (advice_.is_cheap && slow) || unsettled || (last && seen.r_hat > kStuck) ||
        (ends && advice_.tables && watch_.contradicts(cheap_parts(*advice_.tables, kPartOperations, kMostPlanned))) ||
        (ends && seen.settled && scouts_disagree(engine, step, spent));
    if (replaced) return replace_by(*advice_.next);
    if (ends && seen.settled && ess < kLadderMayGain && ladder_wins(seen, engine)) {
      return replace_by(
          {advice_.next->sampler, "a short run of parallel tempering had more effective samples a second"});
    }
  }
  if (ends) return Verdict::keep;
  watch_.halve();
  return Verdict::undecided;
}

std::vector<std::size_t> Watcher::scouts_to_quench() const {
  std::vector<std::size_t> chosen;
  for (std::size_t c = 0; c < kScouts; ++c) {
    if (c % 4 == 3 || (model_.fibers() != nullptr && c % 4 == 1)) chosen.push_back(c);
  }
  return chosen;
}

std::unique_ptr<Run> Watcher::make_scouts(std::uint64_t step, double seconds) const {
  RunOptions options;
  options.chains = kScouts;
  // Random states may all lead to a disordered mode. Of every four scouts one begins with all variables at their lowest
  // level and one with all at their highest; user code may be undefined there.
  options.start = model_.fibers() != nullptr ? Start::uniform : Start::dispersed;
  options.warmup = is_row<DlsbRow>(advice_.sampler) ? step : 0;  // finds the length of its steps
  options.thin = 1;
  options.seed = seed_;
  options.first_chain = kFirstScout;
  options.threads = 1;
  options.keep = Keep::monitors;
  options.device = Device::cpu;
  options.seconds = seconds;
  try {
    auto scouts = std::make_unique<Run>(model_, advice_.sampler, options);
    scouts->warm_up();
    const std::vector<std::size_t> chosen = scouts_to_quench();
    const std::vector<Value> cooled = quenched_states(
        model_, {.chains = chosen.size(), .seed = seed_, .first_chain = kFirstScout, .seconds = 0.25 * seconds});
    if (cooled.empty()) return scouts;
    std::vector<Value> states = scouts->states();
    const auto n = static_cast<std::ptrdiff_t>(model_.layout.variables);
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      std::copy_n(cooled.begin() + static_cast<std::ptrdiff_t>(k) * n, n,
                  states.begin() + static_cast<std::ptrdiff_t>(chosen[k]) * n);
    }
    scouts->restart(states);
    return scouts;
  } catch (const InputError&) {
    return nullptr;  // nobody can say where else the distribution is
  }
}

bool Watcher::scouts_disagree(const Engine& engine, std::uint64_t step, std::optional<double> spent) const {
  if (model_.layout.variables > kMostScouted) return false;
  // Ranks may not differ, and their clocks do.
  const std::unique_ptr<Run> scouts =
      make_scouts(step, spent && engine.division() == nullptr ? kLongestWatch * seconds_ : 0.0);
  if (!scouts) return false;
  Watch watch(model_, kScouts, watch_.spacing());
  std::vector<double> disagreement;  // after as many steps as the chains, twice as many, and so on
  for (std::uint64_t longer = 1;; longer *= 2) {
    while (!watch.is_full() && !scouts->ended()) {
      scouts->advance(watch.spacing());
      if (scouts->is_broken()) return false;
      watch.record(scouts->engine());
    }
    if (watch.points() < kFewestPoints) return false;
    const double r_hat = std::max(watch.look().r_hat, watch.r_hat_along_differences());
    if (r_hat <= kStuck) return false;
    disagreement.push_back(r_hat - 1.0);
    const bool has_time = !spent || 2.0 * static_cast<double>(longer) * *spent < kLongestWatch;
    const bool falls = disagreement.size() > 2 && disagreement.back() <= kFalling * *(disagreement.end() - 3);
    const bool may_go_on = longer < kScoutsLonger || (spent && longer < kScoutsLongest && falls);
    if (!may_go_on || !has_time || scouts->ended()) return true;
    watch.halve();
  }
}

std::unique_ptr<Run> Watcher::short_run(const Sampler& sampler, const Engine& engine, std::size_t warmup,
                                        double seconds) const {
  RunOptions options;
  options.chains = std::min(chains_, kMostRivals);
  options.warmup = warmup;
  options.thin = 1;
  options.seed = seed_;
  options.threads = threads_;
  options.keep = Keep::monitors;
  options.seconds = seconds;
  options.start = Start::given;
  options.given.resize(options.chains * model_.layout.variables);
  observe_all(engine, {0, options.chains}, {.levels = options.given});
  auto run = std::make_unique<Run>(model_, sampler, options);
  run->warm_up();
  return run;
}

bool Watcher::outruns(Run& run, std::uint64_t spacing, const Watch::Look& seen, double cost) const {
  Watch watch(model_, std::min(chains_, kMostRivals), spacing);
  Watch::Look other{};
  for (bool goes_on = true; goes_on;) {
    while (!watch.is_full() && !run.ended()) {
      run.advance(watch.spacing());
      watch.record(run.engine());
    }
    if (watch.points() < kFewestPoints) return false;
    other = watch.look();
    const double ess_per_point = other.ess_per_step * static_cast<double>(watch.spacing());
    goes_on = run.options().seconds > 0.0 && !run.ended() && ess_per_point < kPreciseEss;
    if (goes_on) watch.halve();
  }
  const bool agrees = other.settled || (other.r_hat <= kStuck && seen.r_hat <= kStuck);
  return agrees && other.ess_per_step > cost * seen.ess_per_step;
}

bool Watcher::rival_wins(const Watch::Look& seen, const Engine& engine) const {
  const auto run = short_run(advice_.rival->sampler, engine, 2 * Watch::kPoints);
  return outruns(*run, kRivalSpacing, seen, 1.0);
}

bool Watcher::ladder_wins(const Watch::Look& seen, const Engine& engine) const {
  // Short runs are on the CPU. Ranks may not differ, and their clocks do.
  const bool is_alone = !engine.traits().of_device && engine.division() == nullptr;
  if (!is_row<TemperRow>(advice_.next->sampler) || seconds_ <= 0.0 || !is_alone) return false;
  const auto ladder = short_run(advice_.next->sampler, engine, kLadderWarmup, kLadderFraction * seconds_);
  const double cost = seconds_of_step(*ladder) / seconds_of_step(*short_run(advice_.sampler, engine, 0));
  return outruns(*ladder, 1, seen, kLadderGain * cost);
}

double Watcher::cost_beside(Run& run, const Engine& engine) const {
  const auto cost_of_step = [](Run& timed) {
    timed.advance(1);  // code may be compiled when it is first called
    double least = std::numeric_limits<double>::infinity();
    for (int k = 0; k < kTimed; ++k) {
      const auto begun = std::chrono::steady_clock::now();
      timed.advance(1);
      least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
    }
    return least;
  };
  return cost_of_step(*short_run(advice_.sampler, engine, 0)) / cost_of_step(run);
}

bool Watcher::cheaper_wins(const Engine& engine, std::uint64_t step, const Watch::Look* seen) {
  const auto run = short_run(advice_.cheaper->sampler, engine, 0);
  const auto sweep = static_cast<double>(run->engine().traits().steps_per_sweep);
  if (seen == nullptr) cost_ = cost_beside(*run, engine);
  if (*cost_ >= kTooCostly * sweep) return true;
  if (seen == nullptr || *cost_ < kCostly) return false;
  // As much time as the watch has taken.
  const double affordable = static_cast<double>(step) * *cost_ / static_cast<double>(Watch::kPoints);
  return outruns(*run, static_cast<std::uint64_t>(std::clamp(affordable, 1.0, sweep)), *seen, 1.0 / *cost_);
}

std::uint64_t Watcher::thin() const {
  const double steps = 0.5 / std::max(watch_.look().ess_per_step, 1e-12);
  return static_cast<std::uint64_t>(std::clamp(std::ceil(steps), 1.0, static_cast<double>(sweep_)));
}

nlohmann::json choice_json(const Choice& choice) {
  nlohmann::json out = {{"sampler", choice.sampler}, {"reason", choice.reason}};
  if (choice.thin > 0) out["thin"] = choice.thin;
  return out;
}

std::optional<Choice> read_choice(const nlohmann::json& value) {
  if (!value.is_object() || !value.contains("sampler") || !value["sampler"].is_string()) return std::nullopt;
  Choice choice{value["sampler"], "", 0};
  if (value.contains("reason") && value["reason"].is_string()) choice.reason = value["reason"];
  if (value.contains("thin") && value["thin"].is_number_unsigned()) choice.thin = value["thin"];
  return choice;
}

}  // namespace poise
