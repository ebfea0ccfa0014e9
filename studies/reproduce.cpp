/// From options to a directory with a report.
#include "studies/reproduce.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include <poise/types.hpp>
#include "base/file.hpp"

#include "studies/experiment.hpp"

namespace poise {

namespace reproduction {

namespace {

std::string name_of(Experiment experiment) {
  switch (experiment) {
    case Experiment::ising: return "ising";
    case Experiment::rbm: return "rbm";
    case Experiment::uai: return "uai";
    case Experiment::discs: return "discs";
    case Experiment::select: return "select";
  }
  return "";
}

std::unique_ptr<ExperimentRun> make_experiment(const ReproduceOptions& options) {
  switch (options.experiment) {
    case Experiment::ising: return make_ising_experiment(options);
    case Experiment::rbm: return make_rbm_experiment(options);
    case Experiment::uai: return make_uai_experiment(options);
    case Experiment::discs: return make_discs_experiment(options);
    case Experiment::select: return make_select_experiment(options);
  }
  throw InputError("there is no such experiment");
}

nlohmann::json settings_of(const ReproduceOptions& options, const nlohmann::json& data) {
  return {{"version", POISE_VERSION},
          {"experiment", name_of(options.experiment)},
          {"protocol", options.protocol == Protocol::published ? "published" : "fair"},
          {"effort", options.effort == Effort::quick ? "quick" : "full"},
          {"seed", options.seed},
          {"data", data}};
}

nlohmann::json verdicts_json(const std::vector<Verdict>& verdicts) {
  nlohmann::json out = nlohmann::json::array();
  for (const Verdict& verdict : verdicts) {
    const char* holds = verdict.holds == Verdict::Holds::yes  ? "yes"
                        : verdict.holds == Verdict::Holds::no ? "no"
                                                              : "open";
    out.push_back({{"claim", verdict.claim}, {"holds", holds}, {"evidence", verdict.evidence}});
  }
  return out;
}

/// Times differ from run to run, so they have a file of their own.
void write_numbers(const std::filesystem::path& out, nlohmann::json settings, const Results& results,
                   const std::vector<Verdict>& verdicts) {
  nlohmann::json times = settings;
  nlohmann::json numbers = std::move(settings);
  for (const auto& [key, result] : results) {
    nlohmann::json rest = result;
    if (rest.contains("seconds")) times["seconds"][key] = rest["seconds"];
    for (const char* other : {"seconds", "weights"}) rest.erase(other);
    numbers["parts"][key] = std::move(rest);
  }
  write_atomically(out / "results.json", numbers.dump(1) + "\n");
  write_atomically(out / "times.json", times.dump(1) + "\n");
  write_atomically(out / "verdicts.json", verdicts_json(verdicts).dump(1) + "\n");
}

void write_files(const std::filesystem::path& out, const Document& document) {
  for (const char* folder : {"tables", "figures"}) std::filesystem::create_directories(out / folder);
  for (const auto& [path, content] : document.files()) write_atomically(out / path, content);
  write_atomically(out / "report.html", document.html());
}

}  // namespace

std::string subtitle(const ReproduceOptions& options) {
  return fmt::format("Poise {}, {} protocol, {}seed {}. Numbers are means \u00b1 standard errors.", POISE_VERSION,
                     options.protocol == Protocol::published ? "published" : "fair",
                     options.effort == Effort::quick ? "quick run (shows that it works, not what holds), " : "",
                     options.seed);
}

}  // namespace reproduction

ReproduceOutcome reproduce(const ReproduceOptions& options, const ReproduceHooks& hooks) {
  using namespace reproduction;
  const std::unique_ptr<ExperimentRun> experiment = make_experiment(options);
  const nlohmann::json settings = settings_of(options, experiment->data());
  const std::filesystem::path out = options.out;
  const PartStore store(out / "parts", settings);
  const unsigned threads = options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  PartRunner runner(store, hooks, threads, experiment->num_parts());
  ReproduceOutcome outcome;
  outcome.parts = experiment->num_parts();
  try {
    const Results results = experiment->compute(runner);
    outcome.verdicts = experiment->judge(results);
    write_numbers(out, settings, results, outcome.verdicts);
    write_files(out, experiment->describe(results, outcome.verdicts));
    outcome.report = (out / "report.html").string();
  } catch (const Stopped&) {
    outcome.interrupted = true;
  }
  outcome.reused = runner.reused();
  outcome.seconds = runner.seconds();
  return outcome;
}

}  // namespace poise
