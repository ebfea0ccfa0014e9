/// Runs the experiment on a restricted Boltzmann machine.
#include "studies/rbm/rbm.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/diagnose.hpp>
#include <poise/extend/base/rng.hpp>
#include "base/image/inflate.hpp"
#include "engines/rows.hpp"
#include "inference/train/rbm_trainer.hpp"
#include "studies/contestant.hpp"
#include "studies/distances.hpp"

namespace poise::reproduction {

namespace {

std::string hex_of(const std::string& bytes) {
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char byte : bytes) fmt::format_to(std::back_inserter(out), "{:02x}", static_cast<unsigned char>(byte));
  return out;
}

std::string from_hex(const std::string& digits) {
  const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  out.reserve(digits.size() / 2);
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    out += static_cast<char>(16 * value(digits[i]) + value(digits[i + 1]));
  }
  return out;
}

}  // namespace

nlohmann::json train_rbm(const TrainingPlan& plan, const StopFlag& stop) {
  const auto begun = std::chrono::steady_clock::now();
  const IdxImages& images = plan.images;
  const std::vector<Value> rows = binarise(images, 0.5);
  RbmTrainerOptions options;
  options.seed = plan.seed;
  options.threads = plan.threads;
  RbmTrainer trainer(initial_rbm(static_cast<Index>(images.rows * images.columns), plan.hidden, rows, plan.seed),
                     options);
  const RbmEpoch epoch = trainer.epoch(rows, {.progress = {}, .stop = stop.get()});
  stop.check();
  RbmWeights weights = trainer.weights();
  weights.rows = static_cast<Index>(images.rows);
  weights.columns = static_cast<Index>(images.columns);
  return {{"weights", hex_of(safetensors_bytes(weights))},
          {"reconstruction_error", epoch.metrics.reconstruction_error},
          {"pseudo_log_likelihood", epoch.metrics.pseudo_log_likelihood},
          {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count()}};
}

std::shared_ptr<const Rbm> trained_rbm(const nlohmann::json& result) {
  const std::string bytes = from_hex(result["weights"].get<std::string>());
  return std::make_shared<const Rbm>(parse_safetensors(bytes, "the stored weights"));
}

namespace {

constexpr const char* kFashion = "/usr/share/datasets/fashion-mnist";
constexpr const char* kPaperLearningOfRbm = "objective=mi-bound,ridge=0,schedule=paper";
constexpr double kStartOn = 0.01;                               // part of the units that are on at the start
constexpr std::uint64_t kTruthChains = std::uint64_t{1} << 20;  // numbers of the chains that give the ground truth

std::vector<Contestant> rbm_contestants(Protocol protocol) {
  // The longest first, so that no thread is left alone with it at the end.
  std::vector<Contestant> out = {
      {.key = "gibbs-10", .label = "Gibbs-10", .sampler = "gibbs:block=10", .color = "#0072b2", .dash = "2 3"},
      {.key = "hb-10-3", .label = "HB-10-3", .sampler = "hb:block=10,radius=3", .color = "#009e73", .dash = "2 3"},
      {.key = "flsb2", .label = "FLSB 2", .sampler = fmt::format("flsb2:{}", kPaperLearningOfRbm), .color = "#e69f00"},
      {.key = "flsb1", .label = "FLSB 1", .sampler = fmt::format("flsb1:{}", kPaperLearningOfRbm), .color = "#56b4e9"}};
  if (protocol == Protocol::fair) {
    out.push_back({.key = "flsb2-entropy",
                   .label = "FLSB 2, repaired",
                   .sampler = "flsb2:objective=entropy",
                   .color = "#e69f00",
                   .dash = "7 3"});
  }
  const std::vector<Contestant> rest = {
      {.key = "flsb", .label = "flsb", .sampler = "flsb", .color = "#d55e00"},
      {.key = "gwg", .label = "GWG", .sampler = "gwg", .color = "#000000"},
      {.key = "hb-10-2", .label = "HB-10-2", .sampler = "hb:block=10,radius=2", .color = "#009e73", .dash = "7 3"},
      {.key = "hb-10-1", .label = "HB-10-1", .sampler = "hb:block=10,radius=1", .color = "#009e73"},
      {.key = "gibbs-4", .label = "Gibbs-4", .sampler = "gibbs:block=4", .color = "#0072b2", .dash = "7 3"},
      {.key = "gibbs-2", .label = "Gibbs-2", .sampler = "gibbs:block=2", .color = "#0072b2"}};
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

std::vector<Value> sparse_start(Index variables, std::uint64_t seed, std::uint64_t chain) {
  Rng rng = make_rng(seed, Stream::experiment_start, chain);
  std::vector<Value> x(variables);
  for (Value& level : x) level = rng.uniform() < kStartOn ? 1 : 0;
  return x;
}

std::string bits_of(std::span<const Value> x) {
  std::string out;
  for (const Value level : x) out += static_cast<char>('0' + level);
  return out;
}

}  // namespace

RbmExperiment::RbmExperiment(const ReproduceOptions& options)
    : options_(options), contestants_(rbm_contestants(options.protocol)) {
  if (options.data.empty() && !std::filesystem::is_directory(kFashion)) {
    throw InputError(
        "without --data this experiment takes Fashion-MNIST from the Debian package dataset-fashion-mnist, which is "
        "not installed; install it, or give a directory with MNIST's files");
  }
  images_ = read_idx(options.data.empty() ? kFashion : options.data);
  data_name_ = options.data.empty() ? "Fashion-MNIST" : "the images given";
  if (options.effort == Effort::full) return;
  images_.count = std::min<std::size_t>(images_.count, 4000);
  images_.pixels.resize(images_.count * images_.rows * images_.columns);
  hidden_ = 100;
  chains_ = 8;
  burn_in_ = 1000;
  sampling_ = 1500;
  every_ = 100;
  truth_ = 100;
  truth_parts_ = 2;
  truth_steps_ = 300;
}

nlohmann::json RbmExperiment::data() const {
  return {{"images", images_.count},
          {"rows", images_.rows},
          {"columns", images_.columns},
          {"checksum", crc32_of(images_.pixels)}};
}

nlohmann::json RbmExperiment::draw_truth(const std::shared_ptr<const Rbm>& rbm, std::size_t part,
                                         const StopFlag& stop) const {
  const auto begun = std::chrono::steady_clock::now();
  const Model model = rbm_model("rbm", rbm);
  const std::size_t count = truth_ / truth_parts_;
  const std::size_t pixels = rbm->num_variables();
  EngineOptions options;
  options.seed = options_.seed;
  options.first_chain = kTruthChains + part * count;
  Rng choice = make_rng(options_.seed, Stream::experiment_choice, part);
  const std::vector<Value> rows = binarise(images_, 0.5);
  for (std::size_t c = 0; c < count; ++c) {
    // Every other one begins at an image: where both kinds end alike, the start is forgotten.
    const auto image = static_cast<std::size_t>(choice.uniform() * static_cast<double>(images_.count));
    const auto* first = rows.data() + image * pixels;
    options.starts.push_back(c % 2 == 0 ? sparse_start(rbm->num_variables(), options_.seed, options.first_chain + c)
                                        : std::vector<Value>(first, first + pixels));
  }
  options.reference = options.starts[0];
  const std::unique_ptr<Engine> engine = make_engine(model, parse_sampler("rbm-gibbs"), options).engine;
  nlohmann::json out;
  for (std::size_t c = 0; c < count; ++c) {
    for (std::uint64_t done = 0; done < truth_steps_; done += 100) {
      stop.check();
      engine->advance({c, 1}, std::min<std::uint64_t>(100, truth_steps_ - done));
    }
    out["states"].push_back(bits_of(levels_of(*engine, c)));
  }
  out["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return out;
}

GroundTruth RbmExperiment::gather_truth(const Results& results) const {
  GroundTruth truth;
  for (std::size_t part = 0; part < truth_parts_; ++part) {
    for (const nlohmann::json& state : results.at(fmt::format("truth{}", part + 1))["states"]) {
      for (const char bit : state.get_ref<const std::string&>())
        truth.draws.push_back(static_cast<std::int8_t>(bit - '0'));
      ++truth.count;
    }
  }
  return truth;
}

nlohmann::json RbmExperiment::measure(const std::shared_ptr<const Rbm>& rbm, const Contestant& contestant,
                                      const GroundTruth& truth, const StopFlag& stop) const {
  const auto begun = std::chrono::steady_clock::now();
  const Model model = rbm_model("rbm", rbm);
  const Index pixels = rbm->num_variables();
  EngineOptions options;
  options.seed = options_.seed;
  for (std::size_t c = 0; c < chains_; ++c) options.starts.push_back(sparse_start(pixels, options_.seed, c));
  options.reference = options.starts[0];
  std::vector<TunableEngine> members;
  members.push_back(make_engine(model, parse_sampler(contestant.sampler), options));
  ContestantRun run(model, contestant, std::move(members));
  const Engine& engine = run.engine();

  const Discrepancy measure_of(truth);
  std::vector<DiscrepancyLook> looks;
  nlohmann::json discrepancy;
  std::vector<Value> x(pixels);
  std::vector<Value> states(chains_ * pixels);
  const auto look_at_discrepancy = [&](std::uint64_t step) {
    engine.observe({0, chains_}, {.levels = states});
    const DiscrepancyLook found = measure_of.look(states);
    if (step > 0 && step <= burn_in_) looks.push_back(found);
    discrepancy["step"].push_back(step);
    discrepancy["evals"].push_back(evals_per_chain(engine));
    discrepancy["mmd2"].push_back(found.value);
    discrepancy["mmd2_error"].push_back(jackknife(found).error());
  };
  look_at_discrepancy(0);

  const auto common = [&](std::size_t c, std::uint64_t step) {
    if (step % 16 == 0) stop.check();
    // The last chain of a step: warm-up moves groups on one after the other, so looks are taken when the slowest is
    // there.
    if (c + 1 == chains_ && step % every_ == 0) look_at_discrepancy(step);
  };
  run.watch(common);
  const BalancingFunction balance = run.burn_in({burn_in_, burn_in_});
  const Estimate early = jackknife(mean_of(looks));
  const double burn_in_evals = evals_per_chain(engine);
  const double accepted = total_accepted(engine);

  // As published: one chain and all reference draws; or all chains and a share of the draws for each.
  DistanceRecorder distances(truth, published() ? 1 : chains_, sampling_);
  for (std::size_t c = 0; c < distances.chains(); ++c) {
    engine.observe({c, 1}, {.levels = x});
    distances.begin(c, x);
  }
  run.watch([&](std::size_t c, std::uint64_t step) {
    common(c, step);
    if (c >= distances.chains()) return;
    engine.observe({c, 1}, {.levels = x});
    distances.add(c, x);
  });
  run.advance(sampling_);
  const auto steps = static_cast<double>(sampling_);
  const double evals_per_step = (evals_per_chain(engine) - burn_in_evals) / steps;
  const double acceptance = (total_accepted(engine) - accepted) / (steps * static_cast<double>(chains_));
  nlohmann::json ess;
  for (std::size_t c = 0; c < distances.chains(); ++c) {
    ess.push_back(distances.effective_sizes(c, [&] { stop.check(); }));
  }
  nlohmann::json last = nlohmann::json::array();
  for (std::size_t c = 0; c < std::min<std::size_t>(chains_, 8); ++c) {
    engine.observe({c, 1}, {.levels = x});
    last.push_back(bits_of(x));
  }

  // Time without the bookkeeping, on chains that are done with everything else.
  run.watch({});
  const double clock = cpu_seconds();
  const std::uint64_t timed = std::clamp<std::uint64_t>(sampling_ / 200, 20, 500);
  run.advance(timed);
  const double per_step = (cpu_seconds() - clock) / static_cast<double>(timed);
  return {{"mmd", discrepancy},
          {"mmd2_of_burn_in", {{"mean", early.mean}, {"sd", early.sd}, {"chains", early.count}}},
          {"ess", ess},
          {"phi", tabulated(balance)},
          {"last", last},
          {"acceptance_rate", acceptance},
          {"evals_burn_in", burn_in_evals},
          {"evals_per_step", evals_per_step},
          {"seconds",
           {{"total", std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count()},
            {"per_step_of_all_chains", per_step}}}};
}

Results RbmExperiment::compute(PartRunner& runner) const {
  // Training has threads of its own.
  Results results = runner.run({{"training", [&](const StopFlag& stop) {
                                   return train_rbm({images_, hidden_, options_.seed, runner.threads()}, stop);
                                 }}});
  const std::shared_ptr<const Rbm> rbm = trained_rbm(results["training"]);
  std::vector<Part> parts;
  for (std::size_t part = 0; part < truth_parts_; ++part) {
    parts.push_back({fmt::format("truth{}", part + 1),
                     [this, part, rbm](const StopFlag& stop) { return draw_truth(rbm, part, stop); }});
  }
  results.merge(runner.run(parts));
  const auto truth = std::make_shared<const GroundTruth>(gather_truth(results));
  parts.clear();
  for (const Contestant& contestant : contestants_) {
    parts.push_back({contestant.key, [this, &contestant, rbm, truth](const StopFlag& stop) {
                       return measure(rbm, contestant, *truth, stop);
                     }});
  }
  results.merge(runner.run(parts));
  return results;
}

const Contestant& RbmExperiment::contestant(const std::string& key) const {
  return *std::find_if(contestants_.begin(), contestants_.end(), [&](const Contestant& c) { return c.key == key; });
}

Estimate RbmExperiment::early_discrepancy(const nlohmann::json& result) {
  const nlohmann::json& found = result["mmd2_of_burn_in"];
  return {number(found["mean"]), number(found["sd"]), found["chains"].get<std::size_t>()};
}

Estimate RbmExperiment::median_ess(const nlohmann::json& result) {
  std::vector<double> medians;
  for (const nlohmann::json& chain : result["ess"]) {
    std::vector<double> values = numbers(chain);
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    medians.push_back(*middle);
  }
  return estimate(medians);
}

std::unique_ptr<ExperimentRun> make_rbm_experiment(const ReproduceOptions& options) {
  return std::make_unique<RbmExperiment>(options);
}

}  // namespace poise::reproduction
