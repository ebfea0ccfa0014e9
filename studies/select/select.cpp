/// Runs the experiment on variable selection: references first, then every sampler with every setting.
#include "studies/select/select.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace poise::reproduction {

namespace {

constexpr std::uint64_t kQuickFlips = 2000;

}  // namespace

std::vector<SelectSampler> select_samplers() {
  const std::vector<std::uint64_t> looks = {2, 8, 32};
  std::vector<SelectSampler> out;
  out.push_back(
      {.contestant = {.key = "gibbs", .label = "Gibbs", .sampler = "gibbs", .color = "#777777", .dash = "4 2"},
       .specs = {"gibbs"},
       .thins = {1},
       .steps_per_flip = 0.25});
  struct Fixed {
    const char* key;
    const char* label;
    const char* color;
    const char* dash;
  };
  for (const Fixed& one :
       {Fixed{"barker", "lb, t/(1+t)", "#0072b2", ""}, Fixed{"sqrt", "lb, \u221at", "#000000", ""},
        Fixed{"min", "lb, min{1,t}", "#009e73", "2 3"}, Fixed{"max", "lb, max{1,t}", "#cc79a7", "8 3 2 3"}}) {
    const std::string spec = fmt::format("lb:g={}", one.key);
    out.push_back(
        {.contestant = {.key = one.key, .label = one.label, .sampler = spec, .color = one.color, .dash = one.dash},
         .specs = {spec},
         .thins = looks});
  }
  out.push_back({.contestant = {.key = "lsb", .label = "lsb", .sampler = "lsb", .color = "#d55e00"},
                 .specs = {"lsb"},
                 .thins = looks});
  out.push_back({.contestant = {.key = "wtgs", .label = "wtgs", .sampler = "wtgs", .color = "#56b4e9"},
                 .specs = {"wtgs:k=0.3", "wtgs", "wtgs:k=5"},
                 .thins = {1},
                 .steps_per_flip = 0.125});
  out.push_back(
      {.contestant = {.key = "temper", .label = "tempering", .sampler = "temper", .color = "#e69f00", .dash = "7 3"},
       .specs = {"temper"},
       .thins = {1, 4},
       .steps_per_flip = 0.02});
  return out;
}

SelectExperiment::SelectExperiment(const ReproduceOptions& options)
    : options_(options),
      cases_(options.data.empty() ? simulate_select_cases(options.effort, options.seed)
                                  : read_select_cases(options.data)),
      samplers_(select_samplers()) {
  if (options.protocol == Protocol::published) {
    throw InputError("--protocol: select has no published protocol; it compares samplers of this program");
  }
  plan_.seed = options.seed;
  if (options.effort == Effort::quick) {
    plan_.chains = 4;
    plan_.flips = kQuickFlips;
  }
}

nlohmann::json SelectExperiment::data() const {
  nlohmann::json out;
  for (const SelectCase& which : cases_) out[which.key] = which.fingerprint;
  return out;
}

std::string SelectExperiment::part_key(const SelectCase& which, const SelectSampler& sampler, std::size_t setting) {
  return fmt::format("{}-{}-{}", which.key, sampler.contestant.key, setting + 1);
}

std::vector<SelectRun> SelectExperiment::settings_of(const SelectSampler& sampler) const {
  std::vector<SelectRun> out;
  const auto steps = static_cast<std::uint64_t>(static_cast<double>(plan_.flips) * sampler.steps_per_flip);
  for (const std::string& spec : sampler.specs) {
    for (const std::uint64_t thin : sampler.thins) out.push_back({spec, thin, steps});
  }
  return out;
}

std::size_t SelectExperiment::num_parts() const {
  std::size_t count = 1;
  for (const SelectSampler& one : samplers_) count += one.specs.size() * one.thins.size();
  return count * cases_.size();
}

Results SelectExperiment::compute(PartRunner& runner) const {
  std::vector<Part> parts;
  for (const SelectCase& which : cases_) {
    parts.push_back({reference_key(which), [&](const StopFlag& stop) { return reference_of(which, plan_, stop); }});
  }
  Results results = runner.run(parts);
  parts.clear();
  for (const SelectCase& which : cases_) {
    const std::vector<double> reference = numbers(results.at(reference_key(which))["pip"]);
    for (const SelectSampler& one : samplers_) {
      const std::vector<SelectRun> settings = settings_of(one);
      for (std::size_t k = 0; k < settings.size(); ++k) {
        parts.push_back(
            {part_key(which, one, k), [this, &which, reference, setting = settings[k]](const StopFlag& stop) {
               return sample_select(which, setting, plan_, reference, stop);
             }});
      }
    }
  }
  results.merge(runner.run(parts));
  return results;
}

const SelectSampler& SelectExperiment::sampler(const std::string& key) const {
  return *std::find_if(samplers_.begin(), samplers_.end(),
                       [&](const SelectSampler& one) { return one.contestant.key == key; });
}

Estimate SelectExperiment::ess(const nlohmann::json& reference, const nlohmann::json& run) {
  double spread = 0.0;
  for (const double p : numbers(reference["pip"])) spread += p * (1.0 - p);
  const Estimate squares = estimate_of(run["squares"]);
  // Errors of the mean squared error carry over in proportion.
  return {spread / squares.mean, spread / squares.mean * squares.sd / squares.mean, squares.count};
}

const nlohmann::json& SelectExperiment::best_run(const Results& results, const SelectCase& which,
                                                 const SelectSampler& sampler) const {
  const nlohmann::json& reference = results.at(reference_key(which));
  const nlohmann::json* best = nullptr;
  double most = -1.0;
  for (std::size_t k = 0; k < sampler.specs.size() * sampler.thins.size(); ++k) {
    const nlohmann::json& run = results.at(part_key(which, sampler, k));
    const double rate =
        ess(reference, run).mean / (number(run["seconds"]["warmup"]) + number(run["seconds"]["sampling"]));
    if (best != nullptr && !(rate > most)) continue;
    best = &run;
    most = rate;
  }
  return *best;
}

Estimate SelectExperiment::ess(const Results& results, const SelectCase& which, const std::string& key, Per per) const {
  const nlohmann::json& run = best_run(results, which, sampler(key));
  Estimate out = ess(results.at(reference_key(which)), run);
  const nlohmann::json& seconds = run["seconds"];
  const double all = number(seconds["sampling"]) + (per == Per::second ? number(seconds["warmup"]) : 0.0);
  // All chains of a run share its time.
  const double scale = static_cast<double>(out.count) / all;
  out.mean *= scale;
  out.sd *= scale;
  return out;
}

std::unique_ptr<ExperimentRun> make_select_experiment(const ReproduceOptions& options) {
  return std::make_unique<SelectExperiment>(options);
}

}  // namespace poise::reproduction
