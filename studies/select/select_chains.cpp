/// Chains of one sampler on one regression, and how far off the inclusion probabilities of each of them are.
#include <algorithm>
#include <cmath>
#include <limits>

#include <poise/run.hpp>
#include "inference/select/selection_parts.hpp"

#include "studies/select/select.hpp"

namespace poise::reproduction {

namespace {

/// Random numbers of the reference.
constexpr std::uint64_t kReferenceSeeds = std::uint64_t{1} << 40;
/// Flips between two draws of the reference, about.
constexpr std::size_t kFlipsPerDraw = 64;
/// Parts of a run after which errors are looked at.
constexpr std::size_t kLooks = 7;
/// Variables whose inclusion is this uncertain are looked at one by one.
constexpr double kUncertain = 0.05;

/// Inclusion probabilities by one chain.
std::vector<double> probabilities_of(const Run& run, std::size_t chain) {
  const RaoBlackwell found = run.engine().rao_blackwell(chain);
  std::vector<double> out = found.sums;
  for (double& value : out) value /= static_cast<double>(std::max<std::uint64_t>(1, found.count));
  return out;
}

double square(double x) { return x * x; }

}  // namespace

nlohmann::json reference_of(const SelectCase& which, const SelectPlan& plan, const StopFlag& stop) {
  SelectOptions options;
  options.chains = plan.chains / 2;
  options.seed = plan.seed + kReferenceSeeds;
  options.threads = 1;  // the parts of an experiment have threads of their own
  options.draws = std::max<std::size_t>(100, plan.flips * plan.reference_times / kFlipsPerDraw);
  const double begun = cpu_seconds();
  SelectHooks hooks;
  hooks.stop = stop.get();
  const SelectionAnswer answer = select(which.problem, options, hooks);
  stop.check();
  nlohmann::json out;
  for (const SelectedVariable& one : answer.variables) {
    out["pip"].push_back(one.pip);
    out["pip_se"].push_back(one.pip_se);
  }
  out["sets"] = nlohmann::json::array();
  for (const CredibleSet& set : answer.sets) {
    out["sets"].push_back(
        {{"variables", set.variables}, {"share", set.share}, {"mass", set.mass}, {"purity", set.purity}});
  }
  double included = 0.0;
  for (const SelectedVariable& one : answer.variables) included += one.pip;
  out["included"] = included;
  out["warnings"] = answer.warnings.size();
  out["seconds"] = cpu_seconds() - begun;
  return out;
}

nlohmann::json sample_select(const SelectCase& which, const SelectRun& setting, const SelectPlan& plan,
                             const std::vector<double>& reference, const StopFlag& stop) {
  const Model model = selection_model(which.problem);
  const SelectionTarget target(which.problem->law);
  SelectOptions starts;
  starts.chains = plan.chains;
  starts.seed = plan.seed;
  RunOptions options;
  options.chains = plan.chains;
  options.seed = plan.seed;
  options.threads = 1;
  options.keep = Keep::monitors;
  options.rao_blackwell = true;
  options.thin = setting.thin;
  options.draws = std::max<std::size_t>(std::size_t{1} << kLooks, setting.steps / setting.thin);
  options.warmup = options.draws / 4;
  options.start = Start::given;
  options.given = selection_starts(model, target, starts, SelectStart::mixed);
  Run run(model, parse_sampler(setting.spec), options, {.stop = stop.get()});

  const double begun = cpu_seconds();
  run.warm_up();
  stop.check();
  const double warm = cpu_seconds();
  nlohmann::json out = {{"spec", setting.spec}, {"thin", setting.thin}};
  std::vector<std::vector<double>> probabilities(plan.chains);
  double sampling = 0.0;
  for (std::size_t look = 0; look <= kLooks; ++look) {
    const std::size_t until = options.draws >> (kLooks - look);
    const double from = cpu_seconds();
    run.sample(until - run.draws());
    sampling += cpu_seconds() - from;
    stop.check();
    double squares = 0.0;
    for (std::size_t c = 0; c < plan.chains; ++c) {
      probabilities[c] = probabilities_of(run, c);
      for (std::size_t j = 0; j < reference.size(); ++j) squares += square(probabilities[c][j] - reference[j]);
    }
    out["curve"]["part"].push_back(static_cast<double>(until) / static_cast<double>(options.draws));
    out["curve"]["error"].push_back(std::sqrt(squares / static_cast<double>(plan.chains)));
  }
  std::vector<double> mean(reference.size(), 0.0);
  std::vector<double> squares_of_variable(reference.size(), 0.0);
  for (const std::vector<double>& own : probabilities) {
    double squares = 0.0;
    for (std::size_t j = 0; j < reference.size(); ++j) {
      mean[j] += own[j] / static_cast<double>(plan.chains);
      squares_of_variable[j] += square(own[j] - reference[j]) / static_cast<double>(plan.chains);
      squares += square(own[j] - reference[j]);
    }
    out["squares"].push_back(squares);
  }
  double farthest = 0.0;
  double slowest = std::numeric_limits<double>::infinity();
  for (std::size_t j = 0; j < reference.size(); ++j) {
    farthest = std::max(farthest, std::abs(mean[j] - reference[j]));
    if (std::min(reference[j], 1.0 - reference[j]) < kUncertain) continue;
    slowest = std::min(slowest, reference[j] * (1.0 - reference[j]) / squares_of_variable[j]);
  }
  out["farthest"] = farthest;
  out["slowest"] = std::isfinite(slowest) ? nlohmann::json(slowest) : nlohmann::json();

  const RunResult result = run.finish();
  out["steps"] = result.steps / plan.chains;
  out["warmup_steps"] = result.warmup_steps;
  out["r_hat"] = r_hat({result.trace.monitors[0].data(), result.trace.chains, result.trace.draws});
  if (parse_sampler(setting.spec).learns()) {
    out["knots"] = result.knots;
    out["log_phi"] = result.log_phi;
  }
  out["seconds"] = {{"warmup", warm - begun}, {"sampling", sampling}};
  return out;
}

}  // namespace poise::reproduction
