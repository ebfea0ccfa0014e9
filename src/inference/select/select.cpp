/// Variable selection: chains from different starts, and the answer their draws give.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include <poise/extend/engines/samplers.hpp>
#include "base/options.hpp"
#include "inference/select/selection_parts.hpp"

namespace poise {

namespace {

/// Units of time per draw: with some eight flips a unit, draws are then nearly independent where chains mix at all.
constexpr std::uint64_t kUsualThin = 8;
/// Variables that greedy addition stops at, and most of those that a random start has.
constexpr std::size_t kMostGreedy = 20;
constexpr std::size_t kMostRandom = 10;
/// Chains whose inclusion probabilities differ by more, and by as many standard errors, disagree.
constexpr double kFarApart = 0.1;
constexpr double kSure = 5.0;

std::vector<Value> empty_start(const SelectionLaw& law) {
  std::vector<Value> x(law.size(), 0);
  for (const Index j : law.forced()) x[j] = 1;
  return x;
}

/// Adds what has the highest odds, while they are above one.
std::vector<Value> greedy_start(const SelectionTarget& target) {
  SelectionTarget::State state = target.make_state(empty_start(target.law()));
  LineVector odds(lines_of(target.num_variables()));
  for (std::size_t k = 0; k < kMostGreedy; ++k) {
    target.all_log_odds(state, numbers_of(odds));
    Index best = target.num_variables();
    for (Index j = 0; j < target.num_variables(); ++j) {
      const bool free = state.x[j] == 0 && numbers_of(odds)[j] > 0.0;
      if (free && (best == target.num_variables() || numbers_of(odds)[j] > numbers_of(odds)[best])) best = j;
    }
    if (best == target.num_variables()) break;
    target.apply(state, {best, 1});
  }
  return state.x;
}

std::vector<Value> random_start(const Model& model, const SelectionTarget& target, std::uint64_t seed,
                                std::size_t chain) {
  Rng rng = make_rng(seed, Stream::start, chain);
  std::vector<Value> x(target.num_variables(), 0);
  const std::size_t count = 1 + static_cast<std::size_t>(rng.uniform() * kMostRandom);
  for (std::size_t k = 0; k < count; ++k) x[static_cast<Index>(rng.uniform() * target.num_variables())] = 1;
  for (Index j = 0; j < target.num_variables(); ++j) {
    if (target.law().is_fixed(j)) x[j] = target.law().is_forced(j) ? 1 : 0;
  }
  const bool possible = target.log_prob(target.make_state(x)) > kMinusInfinity;
  return possible ? x : model.into_support(x, rng);
}

/// Chains that hardly meet want tempering, others more draws.
std::string better_run(double apart, const RunResult& result) {
  constexpr double kHardlyMeet = 0.5;
  return apart > kHardlyMeet ? "--sampler temper" : fmt::format("--draws {}", 4 * result.options.draws);
}

/// Inclusion probabilities of single chains that differ, and by more than chance. Whether there are any.
bool compare_chains(const RunResult& result, const SelectionProblem& problem, std::vector<Warning>& warnings) {
  if (result.batches.size() < 2) return false;
  std::vector<std::pair<double, std::string>> found;
  for (std::size_t j = 0; j < result.rao_blackwell.size(); ++j) {
    SettledMean least{2.0, 0.0};
    SettledMean most{-1.0, 0.0};
    for (const BatchMeans& chain : result.batches) {
      const SettledMean own = settled_mean(chain, j);
      if (own.mean < least.mean) least = own;
      if (own.mean > most.mean) most = own;
    }
    const double apart = most.mean - least.mean;
    if (apart > kFarApart && apart > kSure * std::hypot(least.error, most.error)) {
      found.emplace_back(-apart, fmt::format("{} ({:.2f} to {:.2f})", problem.names[j], least.mean, most.mean));
    }
  }
  if (found.empty()) return false;
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (const auto& [apart, name] : found) names.push_back(name);
  warnings.push_back(
      {"rhat",
       fmt::format("Chains disagree about the inclusion of {}: {}",
                   names.size() == 1 ? "a variable" : fmt::format("{} variables", names.size()), some_of(names)),
       better_run(-found.front().first, result)});
  return true;
}

/// What chains that agree about single variables may still disagree about.
void judge_log_prob(const SelectionAnswer& answer, const RunResult& result, std::vector<Warning>& warnings) {
  if (answer.report.monitors.empty()) return;
  const double r_hat = answer.report.monitors.front().summary.r_hat;
  constexpr double kMostRHat = 1.05;
  if (!(r_hat > kMostRHat)) return;
  warnings.push_back({"rhat",
                      fmt::format("R-hat of log p is {:.3g}, above {}: chains have not mixed", r_hat, kMostRHat),
                      better_run(r_hat - 1.0, result)});
}

}  // namespace

std::vector<Value> selection_starts(const Model& model, const SelectionTarget& target, const SelectOptions& options,
                                    SelectStart how) {
  std::vector<Value> out;
  std::vector<Value> greedy;
  for (std::size_t c = 0; c < options.chains; ++c) {
    SelectStart own = how;
    if (how == SelectStart::mixed)
      own = c == 0 ? SelectStart::empty : c == 1 ? SelectStart::greedy : SelectStart::random;
    std::vector<Value> x;
    switch (own) {
      case SelectStart::greedy:
        if (greedy.empty()) greedy = greedy_start(target);
        x = greedy;
        break;
      case SelectStart::random: x = random_start(model, target, options.seed, c); break;
      default: x = empty_start(target.law()); break;
    }
    out.insert(out.end(), x.begin(), x.end());
  }
  return out;
}

std::vector<DrawnModel> drawn_models(const Trace& trace, Index variables) {
  std::map<std::vector<Index>, double> counts;
  std::vector<Index> set;
  for (std::size_t draw = 0; draw < trace.x.rows(); ++draw) {
    set.clear();
    for (Index j = 0; j < variables; ++j) {
      if (trace.x.label(draw, j) > 0) set.push_back(j);
    }
    ++counts[set];
  }
  std::vector<DrawnModel> out;
  for (const auto& [model, draws] : counts) out.push_back({model, draws});
  std::stable_sort(out.begin(), out.end(), [](const DrawnModel& a, const DrawnModel& b) { return a.draws > b.draws; });
  return out;
}

void SelectOptions::describe(OptionVisitor& visit) {
  visit({"sampler", "NAME", "Sampler: wtgs, or any that makes single changes, such as temper or lb"}, sampler);
  visit({.name = "chains", .value = "N", .help = "Chains, from different starts", .least = 1, .most = 1 << 20}, chains);
  visit({.name = "draws", .value = "N", .help = "Draws of each chain", .least = 1, .most = std::uint64_t{1} << 40},
        draws);
  visit({.name = "warmup",
         .value = "N",
         .help = "Draws left out at first",
         .unset = "a fifth of --draws",
         .most = std::uint64_t{1} << 40},
        warmup);
  visit({.name = "thin",
         .value = "N",
         .help = "Steps per draw",
         .unset = "8 units of time, or a sweep of other samplers"},
        thin);
  std::optional<double> limit = seconds > 0.0 ? std::optional(seconds) : std::nullopt;
  visit({.name = "seconds", .value = "S", .help = "Time to sample for, in place of --draws", .unset = "none"}, limit);
  seconds = limit.value_or(0.0);
  visit({"seed", "S", "Seed of all random numbers"}, seed);
  visit({.name = "threads", .value = "T", .help = "Threads", .unset = "0: all cores", .most = 1 << 16}, threads);
  visit({"coverage", "P", "Posterior probability that a credible set contains a signal"}, coverage);
  visit({"purity", "R", "Least absolute correlation within a credible set"}, purity);
  visit({"interval", "P", "Posterior mass of the intervals of coefficients"}, interval);
  visit({.name = "models", .value = "N", .help = "Most probable models that are listed", .least = 1}, models);
}

void SelectOptions::check() const {
  std::vector<std::string> problems;
  const auto probability = [&](const char* name, double value) {
    if (!(value > 0.0 && value < 1.0))
      problems.push_back(fmt::format("{}: found {}, expected a number between 0 and 1", name, value));
  };
  probability("coverage", coverage);
  probability("purity", purity);
  probability("interval", interval);
  if (chains == 0) problems.emplace_back("chains: found 0, expected at least 1");
  if (draws == 0) problems.emplace_back("draws: found 0, expected at least 1");
  if (!problems.empty()) throw InputError(fmt::format("{}", fmt::join(problems, "; ")));
}

SelectionAnswer select(const std::shared_ptr<const SelectionProblem>& problem, const SelectOptions& options,
                       const SelectHooks& hooks) {
  options.check();
  const auto begun = std::chrono::steady_clock::now();
  const Model model = selection_model(problem);
  const SelectionTarget target(problem->law);
  const Sampler sampler = parse_sampler(options.sampler);
  const bool is_jumping = is_row<WeightedGibbsRow>(sampler) || is_row<AutoRow>(sampler);
  RunOptions run_options;
  run_options.chains = options.chains;
  run_options.draws = options.draws;
  run_options.warmup = options.warmup.value_or(options.draws / 5);
  run_options.thin = options.thin > 0 || !is_jumping ? options.thin : kUsualThin;
  run_options.seconds = options.seconds;
  run_options.seed = options.seed;
  run_options.threads = options.threads;
  run_options.rao_blackwell = true;
  run_options.start = Start::given;
  run_options.given = selection_starts(model, target, options, hooks.start);
  RunHooks run_hooks;
  run_hooks.progress = hooks.progress;
  run_hooks.stop = hooks.stop;
  run_hooks.collective = hooks.collective;
  run_hooks.draws_to = hooks.draws_to;
  const RunResult result = run(model, sampler, run_options, run_hooks);

  SelectionAnswer answer;
  answer.interrupted = result.interrupted;
  const bool is_told =
      hooks.collective == nullptr || hooks.draws_to == Collective::To::all || hooks.collective->is_root();
  if (!is_told) return answer;
  answer.model = problem->name;
  answer.response = problem->response;
  answer.summary = problem->summary;
  answer.coverage = options.coverage;
  answer.notes = problem->notes;
  for (const std::string& doubt : problem->doubts) {
    answer.warnings.push_back({"correlations", doubt, "correlations from the sample that z scores come from"});
  }
  for (Index j = 0; j < problem->law->size(); ++j) {
    SelectedVariable& variable = answer.variables.emplace_back();
    variable.name = problem->names[j];
    variable.prior = problem->law->prior_inclusion(j);
    const bool known = !problem->law->is_fixed(j) && j < result.rao_blackwell.size();
    variable.pip = known ? result.rao_blackwell[j] : problem->law->is_forced(j) ? 1.0 : 0.0;
    variable.pip_se = known ? result.rao_blackwell_mcse[j] : 0.0;
  }
  const std::vector<DrawnModel> models = drawn_models(result.trace, problem->law->size());
  double total = 0.0;
  for (const DrawnModel& one : models) total += one.draws;
  for (const DrawnModel& one : models) {
    answer.sizes.resize(std::max(answer.sizes.size(), one.variables.size() + 1), 0.0);
    answer.sizes[one.variables.size()] += one.draws / total;
  }
  for (std::size_t k = 0; k < std::min(options.models, models.size()); ++k) {
    std::vector<Value> x(problem->law->size(), 0);
    for (const Index j : models[k].variables) x[j] = 1;
    const SelectionTarget::State state = target.make_state(x);
    answer.models.push_back(
        {models[k].variables, models[k].draws / total, target.log_prob(state), target.log_likelihood(state)});
  }
  if (total > 0.0) {
    add_coefficients(*problem, models, options, answer);
    answer.sets = credible_sets(*problem, models, options);
  }
  add_correlations(*problem, answer);
  answer.report = make_report(result);
  // Data that do not fit are the cause of much else.
  const std::size_t before = answer.warnings.size();
  add_inconsistencies(*problem, answer.warnings);
  const std::size_t about_data = answer.warnings.size();
  if (!compare_chains(result, *problem, answer.warnings)) judge_log_prob(answer, result, answer.warnings);
  for (std::size_t k = about_data; k < answer.warnings.size() && about_data > before; ++k) {
    answer.warnings[k].next = "data that belong together first";
  }
  answer.notes.insert(answer.notes.end(), answer.report.notes.begin(), answer.report.notes.end());
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return answer;
}

}  // namespace poise
