/// Runs the samplers of the DISCS experiment: first all step lengths of the grids, then everybody anew.
#include "studies/discs/discs.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/image/inflate.hpp"

#include "studies/rbm/rbm.hpp"

namespace poise::reproduction {

namespace {

constexpr std::size_t kDrawnDigits = 10000;
constexpr std::size_t kQuickImages = 400;
/// Draws per sweep of samplers that change one variable a step: none mixes in so short a time.
constexpr std::uint64_t kDrawsPerSweep = 8;
/// A draw of Gibbs is cheap, and so there are more of them.
constexpr std::uint64_t kGibbsDraws = 4;
/// Chains of the final runs have other random numbers than those of the grids: the best of a grid has had luck, and
/// would be judged by it.
constexpr std::uint64_t kFinalChains = 1024;
/// Steps in which samplers tune themselves: the thousand sweeps of a default warm-up, for those whose sweep is a step.
constexpr std::size_t kTuningSteps = 1000;
/// Seconds for which steps are timed: those of Gibbs take microseconds.
constexpr double kTiming = 0.2;
/// Where two step lengths in a row have less than this part of the best, longer ones are not tried.
constexpr double kHopeless = 0.4;

std::uint64_t start_sweeps(const ReproduceOptions& options, const DiscsCase& which) {
  const std::uint64_t sweeps = which.hidden > 0 ? 1000 : which.in_sweep() ? 1000 : 300;
  return options.effort == Effort::quick ? sweeps / 10 : sweeps;
}

DiscsPlan base_plan(const ReproduceOptions& options, const DiscsCase& which) {
  DiscsPlan plan;
  plan.chains = options.effort == Effort::quick ? 4 : 16;
  plan.seed = options.seed;
  plan.start_sweeps = start_sweeps(options, which);
  plan.ordered = which.in_sweep();
  return plan;
}

/// A run whose numbers are shown.
DiscsPlan final_plan(const ReproduceOptions& options, const DiscsCase& which, const DiscsSampler& sampler,
                     Index variables) {
  DiscsPlan plan = base_plan(options, which);
  plan.first_chain = kFinalChains;
  if (options.effort != Effort::quick) plan.timing = kTiming;
  switch (sampler.pace) {
    case Pace::change:
      plan.thin = std::max<std::uint64_t>(1, variables / kDrawsPerSweep);
      plan.draws = which.sweeps * kDrawsPerSweep;
      plan.warmup = plan.draws / 4;
      break;
    case Pace::sweep:
      plan.draws = which.sweeps * kGibbsDraws;
      plan.warmup = 10;
      break;
    case Pace::many:
      plan.draws = which.steps;
      plan.warmup = sampler.has_grid() ? which.steps / 20 : kTuningSteps;
      break;
    case Pace::chosen:
      plan.thin = 0;
      plan.draws = which.sweeps * kGibbsDraws;
      break;
  }
  return plan;
}

/// Effective samples of log p per step at every step length that was tried.
nlohmann::json try_lengths(const Model& model, const DiscsSampler& sampler, DiscsPlan plan, const StopFlag& stop) {
  const auto begun = std::chrono::steady_clock::now();
  nlohmann::json out;
  double best = 0.0;
  int hopeless = 0;
  for (const double length : sampler.grid) {
    const nlohmann::json found = sample_discs(model, sampler.with_length(length), plan, stop);
    const Estimate ess = ess_per_step(found);
    out["length"].push_back(length);
    out["ess_per_step"].push_back(ess.mean);
    out["error"].push_back(ess.error());
    out["acceptance_rate"].push_back(found["acceptance_rate"]);
    if (ess.mean > best) {
      best = ess.mean;
      out["best"] = length;
    }
    hopeless = ess.mean < kHopeless * best ? hopeless + 1 : 0;
    if (hopeless == 2) break;
  }
  if (!out.contains("best")) out["best"] = sampler.grid.front();
  out["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return out;
}

std::string training_key(const DiscsCase& which) { return "training-" + which.key; }

}  // namespace

DiscsExperiment::DiscsExperiment(const ReproduceOptions& options)
    : options_(options), cases_(discs_cases(options.effort, options.seed)), samplers_(discs_samplers(options.effort)) {
  if (options.protocol == Protocol::published) {
    throw InputError(
        "--protocol: discs has no published protocol; its report has numbers of the published code beside its own");
  }
  const bool quick = options.effort == Effort::quick;
  images_ =
      options.data.empty() ? draw_digits(quick ? kQuickImages : kDrawnDigits, options.seed) : read_idx(options.data);
  data_name_ = options.data.empty() ? "drawn digits" : "the images given";
  if (quick && images_.count > kQuickImages) {
    images_.count = kQuickImages;
    images_.pixels.resize(images_.count * images_.rows * images_.columns);
  }
}

nlohmann::json DiscsExperiment::data() const {
  return {{"images", images_.count},
          {"rows", images_.rows},
          {"columns", images_.columns},
          {"checksum", crc32_of(images_.pixels)}};
}

bool DiscsExperiment::takes_part(const DiscsSampler& sampler, const DiscsCase& which) const {
  if (which.in_sweep() && !sampler.in_sweep) return false;
  return !sampler.rbm_only || which.hidden > 0;
}

const DiscsSampler& DiscsExperiment::sampler(const std::string& key) const {
  return *std::find_if(samplers_.begin(), samplers_.end(),
                       [&](const DiscsSampler& one) { return one.contestant.key == key; });
}

std::string DiscsExperiment::part_key(const DiscsCase& which, const DiscsSampler& sampler, const char* ending) {
  return fmt::format("{}-{}{}", which.key, sampler.contestant.key, ending);
}

std::size_t DiscsExperiment::num_parts() const {
  std::size_t count = 0;
  for (const DiscsCase& which : cases_) {
    count += which.hidden > 0 ? 1 : 0;
    for (const DiscsSampler& one : samplers_) {
      if (takes_part(one, which)) count += one.has_grid() ? 2 : 1;
    }
  }
  return count;
}

Results DiscsExperiment::compute(PartRunner& runner) const {
  // Training has threads of its own.
  Results results;
  std::map<std::string, Model> models;
  for (const DiscsCase& which : cases_) {
    if (which.hidden == 0) {
      models.emplace(which.key, make_model(which.model));
      continue;
    }
    results.merge(runner.run({{training_key(which), [&](const StopFlag& stop) {
                                 return train_rbm({images_, which.hidden, options_.seed, runner.threads()}, stop);
                               }}}));
    models.emplace(which.key, rbm_model(which.key, trained_rbm(results.at(training_key(which)))));
  }

  std::vector<Part> parts;
  for (const DiscsCase& which : cases_) {
    for (const DiscsSampler& one : samplers_) {
      if (!takes_part(one, which) || !one.has_grid()) continue;
      DiscsPlan plan = base_plan(options_, which);
      plan.chains /= 2;
      plan.draws = which.tried > 0 ? which.tried : which.steps / 4;
      plan.warmup = plan.draws / 10;
      parts.push_back({part_key(which, one, "-grid"), [&models, &which, &one, plan](const StopFlag& stop) {
                         return try_lengths(models.at(which.key), one, plan, stop);
                       }});
    }
  }
  results.merge(runner.run(parts));

  parts.clear();
  for (const DiscsCase& which : cases_) {
    for (const DiscsSampler& one : samplers_) {
      if (!takes_part(one, which)) continue;
      const Model& model = models.at(which.key);
      const DiscsPlan plan = final_plan(options_, which, one, model.layout.variables);
      const std::string spec = one.has_grid()
                                   ? one.with_length(number(results.at(part_key(which, one, "-grid"))["best"]))
                                   : one.contestant.sampler;
      parts.push_back({part_key(which, one),
                       [&model, spec, plan](const StopFlag& stop) { return sample_discs(model, spec, plan, stop); }});
    }
  }
  results.merge(runner.run(parts));
  return results;
}

std::vector<const DiscsCase*> DiscsExperiment::main_cases() const {
  std::vector<const DiscsCase*> out;
  for (const DiscsCase& which : cases_) {
    if (!which.in_sweep()) out.push_back(&which);
  }
  return out;
}

std::vector<const DiscsCase*> DiscsExperiment::sweep_cases() const {
  std::vector<const DiscsCase*> out;
  for (const DiscsCase& which : cases_) {
    if (which.in_sweep()) out.push_back(&which);
  }
  return out;
}

const nlohmann::json* DiscsExperiment::found(const Results& results, const DiscsCase& which,
                                             const std::string& key) const {
  const auto part = results.find(part_key(which, sampler(key)));
  return part != results.end() ? &part->second : nullptr;
}

bool DiscsExperiment::agree(const Results& results, const DiscsCase& which, const std::string& key) const {
  const nlohmann::json* part = found(results, which, key);
  return part != nullptr && number((*part)["r_hat"]) <= kAgree;
}

Estimate DiscsExperiment::ess(const Results& results, const DiscsCase& which, const std::string& key, Per per) const {
  const nlohmann::json* part = found(results, which, key);
  if (part == nullptr) return {};
  Estimate out = ess_per_step(*part);
  double scale = 1.0;
  if (per == Per::evaluation) scale = 1.0 / number((*part)["evaluations_per_step"]);
  if (per == Per::second) {
    // All chains of a run share its time.
    scale = static_cast<double>(out.count) / number((*part)["seconds"]["per_step_of_all_chains"]);
  }
  out.mean *= scale;
  out.sd *= scale;
  return out;
}

std::unique_ptr<ExperimentRun> make_discs_experiment(const ReproduceOptions& options) {
  return std::make_unique<DiscsExperiment>(options);
}

}  // namespace poise::reproduction
