/// Samplers by kind of model, and verdicts on what was watched.
#include "run/recommend.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include <poise/extend/engines/samplers.hpp>
#include "engines/rows.hpp"
#include "exact/junction_tree.hpp"
#include "models/as_network.hpp"
#include "models/user/batch_target.hpp"
#include "run/start.hpp"

namespace poise {

namespace {

/// Variables of a model beyond which no junction tree is looked for, unless zeros call for one.
constexpr Index kMostPlanned = 4096;
/// States, as a power of two, up to which exact draws are taken without a look at others: they take no time at all.
constexpr double kSmall = 16777216.0;
/// A junction tree is free where it takes a tenth of a second, and fits where it takes seconds. In table entries
/// visited, about a nanosecond each, and bytes.
constexpr double kFreeOperations = 1e8;
constexpr double kMostOperations = 1e10;
constexpr double kMostBytes = 1073741824.0;
/// The fraction of a time limit that it may take.
constexpr double kTreeFraction = 0.1;
/// Chains that disagree by more after half of the warm-up are stuck. Slow chains of one mode were seen at 1.1 to 1.3,
/// where tempering gains nothing.
constexpr double kStuck = 1.3;
/// Chains of scouts, whose random numbers no chain of a run has, and variables up to which they take no time.
constexpr std::size_t kScouts = 16;
constexpr std::uint64_t kFirstScout = std::uint64_t{1} << 40;
constexpr Index kMostScouted = 20000;
/// Steps between two points of a rival: chains that have settled by them have one effective sample in fifty steps.
constexpr std::uint64_t kRivalSpacing = 4;
/// Points that are the least to judge by.
constexpr std::size_t kFewestPoints = 32;

// Effective samples a sweep of Gibbs below which others give more a second, by draws a second of `poise sample` with
// four chains: exact draws of networks take three times as long as sweeps across lanes, and twenty times as long as
// sweeps of bits; a draw of Wolff's, worth half an independent one, takes as long as a sweep across lanes and six times
// as long as one of bits. Lanes are shared by up to sixteen chains.
double least_for_exact(const Model& model) { return has_bits(model) ? 0.05 : 0.3; }
double least_for_clusters(const Model& model, std::size_t chains) {
  if (has_bits(model)) return 0.09;
  return 0.5 * 4.0 / static_cast<double>(std::clamp<std::size_t>(chains, 4, 16));
}

enum class Tree { none, fits, free };

/// What a junction tree of the model takes.
Tree find_tree(const Network& network, const RunOptions& options) {
  const EliminationPlan plan = plan_elimination(network, 0.0);
  if (!plan.complete || plan.bytes > kMostBytes) return Tree::none;
  double most = kMostOperations;
  if (options.seconds > 0.0) most = std::min(most, kTreeFraction * options.seconds * 1e9);
  if (plan.operations > most) return Tree::none;
  return plan.operations <= kFreeOperations ? Tree::free : Tree::fits;
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

/// The sampler that chains begin with.
Advice local_advice(const Model& model) {
  if (const auto* callback = std::get_if<CallbackDescription>(&model.description)) {
    const BatchFunction& function = callback->target->function();
    if (function.has_gradient()) {
      return {parse_sampler(DlsbRow::name), "one gradient lets it change many variables a step"};
    }
    if (function.has_log_ratios()) {
      Advice advice{parse_sampler(LbRow::name), "one call has the ratios of all single changes"};
      advice.finds_thin = true;
      advice.rival = {parse_sampler(DlsbRow::name),
                      "one call has the ratios of all single changes, and many of them can be made at once"};
      return advice;
    }
  }
  if (is_rbm(model)) return {parse_sampler(RbmGibbsRow::name), "the units of a layer are independent given the other"};
  return {parse_sampler(GibbsRow::name), "its chains mix, and none of its updates is rejected"};
}

}  // namespace

Advice recommend(const Model& model, const RunOptions& options, bool is_watched) {
  const Device device = options.device == Device::cuda ? Device::cuda : Device::cpu;
  const auto runs = [&](const char* name) { return why_not(device, model, parse_sampler(name)).empty(); };
  const std::shared_ptr<const Network> tables = try_network(model);
  const bool has_zeros = tables != nullptr && tables->has_zeros();
  Tree tree = Tree::none;
  if (tables != nullptr && (has_zeros || model.layout.variables <= kMostPlanned)) tree = find_tree(*tables, options);
  const bool has_exact = tree != Tree::none && runs(ExactRow::name);
  const char* const independent = "a junction tree is cheap, and its draws are independent";
  if (has_exact && has_zeros) {
    return {
        parse_sampler(ExactRow::name),
        "zeros may keep single changes from parts of the distribution, and draws by a junction tree are independent"};
  }
  if (has_exact && tree == Tree::free && (number_of_states(model) <= kSmall || !is_watched)) {
    return {parse_sampler(ExactRow::name), independent};
  }
  if (has_zeros && runs(TemperRow::name)) {
    return {parse_sampler(TemperRow::name),
            "zeros may keep single changes from parts of the distribution, and tempering leads around them"};
  }
  Advice advice = local_advice(model);
  if (!runs(advice.sampler.name.c_str())) advice = {parse_sampler(GibbsRow::name), "it runs there"};
  if (!is_watched) return advice;
  advice.tables = tables;
  const auto replace_by = [&](const char* name, const char* reason, double least_ess) {
    advice.next = {parse_sampler(name), reason};
    advice.is_cheap = least_ess > 0.0;
    advice.least_ess = least_ess;
  };
  if (has_exact && tree == Tree::free) {
    replace_by(ExactRow::name, independent, least_for_exact(model));
  } else if (runs(WolffRow::name)) {
    replace_by(WolffRow::name, "chains of single changes were slow, and clusters move what they cannot",
               least_for_clusters(model, options.chains));
  } else if (runs(TemperRow::name)) {
    replace_by(TemperRow::name,
               "the chains of the local sampler disagreed, so replicas at higher temperatures carry them", 0.0);
  }
  return advice;
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
      seed_(options.seed),
      watch_(model, options.chains, advice_.finds_thin ? 1 : sweep),
      sweep_(sweep),
      last_step_(warmup / 2) {}

Watcher::Verdict Watcher::look(const Engine& engine, std::uint64_t step, bool hurry) {
  if (step == watch_.next()) watch_.record(engine);
  const bool is_last = hurry || step >= last_step_;
  if (!is_last && !watch_.is_full()) return Verdict::undecided;
  if (watch_.points() < kFewestPoints) return Verdict::keep;
  const Watch::Look seen = watch_.look();
  if (advice_.next) {
    const bool slow = seen.ess_per_step * static_cast<double>(sweep_) < advice_.least_ess;
    const bool replaced =
        (advice_.is_cheap && (slow || !seen.settled)) || (is_last && seen.r_hat > kStuck) ||
        ((is_last || seen.settled) && advice_.tables && watch_.contradicts(solve_cheap_parts(*advice_.tables))) ||
        (seen.settled && !hurry && scouts_disagree());
    if (replaced) return replace_by(*advice_.next);
  }
  if (advice_.rival && seen.settled && !hurry && rival_wins(seen)) return replace_by(*advice_.rival);
  if (is_last || seen.settled) return Verdict::keep;
  watch_.halve();
  return Verdict::undecided;
}

bool Watcher::scouts_disagree() const {
  const bool is_user_code = model_.fibers() != nullptr;
  if (is_user_code || !is_row<GibbsRow>(advice_.sampler) || model_.layout.variables > kMostScouted) return false;
  RunOptions options;
  options.chains = kScouts;
  options.seed = seed_;
  options.first_chain = kFirstScout;
  const TunableEngine made = make_engine(model_, advice_.sampler, engine_options(model_, options));
  const std::vector<ChainGroup> groups = made.engine->share_out(1);
  Watch scouts(model_, kScouts, watch_.spacing());
  while (!scouts.is_full()) {
    for (const ChainGroup& group : groups) made.engine->advance(group, watch_.spacing());
    scouts.record(*made.engine);
  }
  return scouts.look().r_hat > kStuck;
}

bool Watcher::rival_wins(const Watch::Look& seen) const {
  RunOptions options;
  options.warmup = 2 * Watch::kPoints;
  options.thin = 1;
  options.seed = seed_;
  options.keep = Keep::monitors;
  Run run(model_, advice_.rival->sampler, options);
  run.warm_up();
  Watch watch(model_, options.chains, kRivalSpacing);
  while (!watch.is_full()) {
    run.advance(kRivalSpacing);
    watch.record(run.engine());
  }
  const Watch::Look rival = watch.look();
  return rival.settled && rival.ess_per_step > seen.ess_per_step;
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
