/// A randomised differential tester: random models against enumeration, by every sampler.
///
///     poise_laws [--seed S] [--models N] [--seconds T] [--threads T] [--json FILE] [--program PATH] [--files DIR]
///                [--without-clock] [--model K [--sampler X]]
///
/// Models are numbered; what is done with number K of seed S depends on nothing else, so that a failure is made again
/// with --seed S --model K. A limit of seconds cuts the list of models short and changes nothing else.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include <poise/extend/engines/own_kernel.hpp>
#include "laws/checks.hpp"

namespace poise::laws {

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t models = std::numeric_limits<std::uint64_t>::max();
  double seconds = 0.0;  ///< 0: no limit
  unsigned threads = 0;  ///< 0: all cores
  std::string json;
  std::string program;
  std::string files;  ///< where files of models are left; empty: they are removed
  bool by_the_clock = true;
  std::optional<std::uint64_t> model;
  std::string sampler;
};

Options read_options(int count, char** words) {
  Options options;
  const std::map<std::string, std::function<void(const std::string&)>> known = {
      {"--seed", [&](const std::string& word) { options.seed = std::stoull(word); }},
      {"--models", [&](const std::string& word) { options.models = std::stoull(word); }},
      {"--seconds", [&](const std::string& word) { options.seconds = std::stod(word); }},
      {"--threads", [&](const std::string& word) { options.threads = static_cast<unsigned>(std::stoul(word)); }},
      {"--json", [&](const std::string& word) { options.json = word; }},
      {"--program", [&](const std::string& word) { options.program = word; }},
      {"--files", [&](const std::string& word) { options.files = word; }},
      {"--model", [&](const std::string& word) { options.model = std::stoull(word); }},
      {"--sampler", [&](const std::string& word) { options.sampler = word; }}};
  for (int k = 1; k < count; ++k) {
    const std::string word = words[k];
    if (word == "--without-clock") {
      options.by_the_clock = false;
      continue;
    }
    const auto found = known.find(word);
    if (found == known.end() || k + 1 == count)
      throw InputError(fmt::format("unknown or incomplete option '{}'", word));
    found->second(words[++k]);
  }
  if (!options.model && options.seconds <= 0.0 && options.models == Options().models) {
    throw InputError("give --models, --seconds or --model");
  }
  return options;
}

using Spent = std::map<std::string, double>;  // seconds, by check

constexpr std::pair<const char*, void (*)(const Trial&, Tally&)> kChecks[] = {{"values", check_values},
                                                                              {"laws", check_laws},
                                                                              {"runs", check_runs},
                                                                              {"identities", check_identities},
                                                                              {"large", check_large}};

/// All that is done with one model.
Tally test_model(const Options& options, const std::filesystem::path& folder, std::uint64_t number, Spent& spent) {
  Tally tally;
  tally.models = 1;
  Trial trial{options.seed, number, options.sampler, options.program, options.by_the_clock};
  try {
    const Folder files{folder, fmt::format("model{}", number)};
    const SmallModel small = make_small_model(options.seed, number, files);
    Truth truth = enumerate(small);
    if (!small.has_constant) {
      const std::vector<Value> possible = exact_draws(truth, 1, 1);
      const auto target = target_of(small.model);
      *truth.known.mean_log_prob += target->log_prob(target->make_state(possible)) - small.log_prob(possible);
    }
    trial.small = &small;
    trial.truth = &truth;
    for (const std::string& name : all_samplers()) {
      // On a sparse target these are the samplers without "first-order", as an identity says.
      const bool is_double = small.model.sparse && trial.sampler.empty() && (name == "gwg" || name.starts_with("flsb"));
      if (!is_double && trial.wants(name) && takes(small.model, name)) trial.samplers.push_back(name);
    }
    for (const auto& [name, check] : kChecks) {
      const auto started = Clock::now();
      check(trial, tally);
      spent[name] += std::chrono::duration<double>(Clock::now() - started).count();
    }
  } catch (const std::exception& error) {
    tally.findings.push_back({"error", kinds()[number % kinds().size()], "any", error.what(), trial.again("")});
  }
  if (!options.files.empty()) return tally;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().stem() == fmt::format("model{}", number)) std::filesystem::remove(entry.path());
  }
  return tally;
}

/// Models in turn on all threads; their tallies are added up in the order of their numbers.
Tally test_all(const Options& options, const std::filesystem::path& folder) {
  const auto started = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - started).count(); };
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  std::map<std::uint64_t, Tally> done;
  Spent spent;
  std::size_t failures = 0;
  const bool is_watched = ::isatty(STDERR_FILENO) == 1;
  const auto work = [&] {
    while (options.seconds <= 0.0 || elapsed() < options.seconds) {
      const std::uint64_t number = next++;
      if (number >= options.models) return;
      Spent here;
      Tally tally = test_model(options, folder, number, here);
      const std::scoped_lock lock(mutex);
      for (const auto& [name, seconds] : here) spent[name] += seconds;
      failures += tally.passes() ? 0 : 1;
      done.emplace(number, std::move(tally));
      if (!is_watched) continue;
      fmt::print(stderr, "\r{} models in {:.0f} s, failures in {}", done.size(), elapsed(), failures);
      std::fflush(stderr);
    }
  };
  {
    std::vector<std::jthread> threads;
    const unsigned count = options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
    for (unsigned k = 0; k < count; ++k) threads.emplace_back(work);
  }
  Tally all;
  for (const auto& [number, tally] : done) all.add(tally);
  fmt::print(stderr, "\n{:.2f} models and {:.1f} runs a second; seconds of one core:",
             static_cast<double>(all.models) / elapsed(), static_cast<double>(all.sum("", 0, "").runs()) / elapsed());
  for (const auto& [name, seconds] : spent) fmt::print(stderr, " {} {:.0f}", name, seconds);
  fmt::print(stderr, "\n");
  return all;
}

int go(int count, char** words) {
  try {
    const Options options = read_options(count, words);
    std::string folder = options.files;
    if (folder.empty()) {
      folder = (std::filesystem::temp_directory_path() / "poise-laws-XXXXXX").string();
      if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder can be made for files of models");
    }
    std::filesystem::create_directories(folder);
    Spent spent;
    const Tally tally = options.model ? test_model(options, folder, *options.model, spent) : test_all(options, folder);
    if (options.files.empty()) std::filesystem::remove_all(folder);
    fmt::print("{}", tally_text(tally));
    if (!options.json.empty()) std::ofstream(options.json) << tally_json(tally).dump(1) << "\n";
    return tally.passes() ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "poise_laws: {}\n", error.what());
    return 2;
  }
}

}  // namespace

std::size_t Trial::turn(const std::string& name) const {
  const std::vector<std::string> all = all_samplers();
  return number + number / kinds().size() +
         static_cast<std::size_t>(std::find(all.begin(), all.end(), name) - all.begin());
}

std::string Trial::again(const std::string& which) const {
  return fmt::format("poise_laws --seed {} --model {}{}", seed, number, which.empty() ? "" : " --sampler " + which);
}

void Trial::report(Tally& tally, Finding finding) const {
  if (small != nullptr) finding.what += fmt::format("  [{}]", small->recipe);
  tally.findings.push_back(std::move(finding));
}

std::vector<std::string> all_samplers() {
  std::vector<std::string> names;
  for (const NameHelp& row : sampler_help()) names.push_back(row.name);
  for (const char* other : {"gibbs:block=2", "hb:block=3,radius=2", "lb:g=barker", "lb:block=2", "lsb:block=2",
                            "temper:of=lsb", "temper:collapse=0", "dlmc:tau=2", "dlmc:g=barker", "pas:radius=2",
                            "wolff:clusters=2", "lsb:objective=entropy"}) {
    names.emplace_back(other);
  }
  return names;
}

bool takes(const Model& model, const std::string& sampler) {
  try {
    RunOptions options;
    options.chains = options.threads = 1;
    const Run attempt(model, parse_sampler(sampler), options);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace poise::laws

int main(int count, char** words) { return poise::laws::go(count, words); }
