/// Identities: draws depend on the seed alone, not on threads, rounds, interruptions, other chains or the front end.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

#include <fmt/format.h>

#include <poise/extend/engines/samplers.hpp>
#include "laws/checks.hpp"
#include "store/run_file.hpp"

namespace poise::laws {

namespace {

/// One sampler in so many is looked at; over many models all of them have their turn.
constexpr std::size_t kTurns = 8;
constexpr std::size_t kChains = 3;
constexpr std::size_t kDraws = 40;

RunOptions short_run(const Trial& trial) {
  RunOptions options;
  options.chains = kChains;
  options.warmup = 25;
  options.draws = kDraws;
  options.seed = trial.run_seed();
  options.threads = 1;
  return options;
}

/// The draws of a run, and how they came about.
struct Draws {
  States x;
  std::vector<std::vector<double>> monitors;
  std::vector<double> acceptance_rate;

  friend bool operator==(const Draws&, const Draws&) = default;
};

Draws draws_of(Trace trace) {
  return {std::move(trace.x), std::move(trace.monitors), std::move(trace.acceptance_rate)};
}

Draws complete(Run& run) {
  run.warm_up();
  run.sample(run.options().draws - run.draws());
  return draws_of(run.finish().trace);
}

class Identities {
 public:
  Identities(const Trial& trial, std::string name, Tally& tally)
      : trial_(trial),
        model_(trial.small->model),
        name_(std::move(name)),
        sampler_(parse_sampler(name_)),
        tally_(tally) {}

  void check() {
    RunHooks hooks;
    hooks.after_round = [&](const Run& run) { saved_.push_back(run.save()); };
    Run run(model_, sampler_, short_run(trial_), hooks);
    whole_ = complete(run);
    compare("same draws with more threads", [&] { return with_threads(); });
    compare("same draws when resumed", [&] { return resumed(); });
    compare("same draws when made longer", [&] { return extended(); });
    // Samplers that learn do so from all chains together, and so do all that change many variables find out whether a
    // step length that was given is too long for where they begin.
    const bool stands_alone = !sampler_.learns() && !sampler_.settings.many && !sampler_.tempers() &&
                              !is_row<AutoRow>(sampler_) &&
                              !(is_row<WolffRow>(sampler_) && sampler_.settings.clusters == 0);
    if (stands_alone) compare("same chain alone", [&] { return one_by_one(); });
    if (!trial_.program.empty() && !trial_.small->text.empty()) {
      compare("same draws by the program", [&] { return by_program(); });
    }
  }

 private:
  template <class Make>
  void compare(const char* what, Make&& make) {
    Checks& checks = tally_.checks[what];
    ++checks.done;
    std::string problem = "draws differ";
    try {
      if (make() == whole_) return;
    } catch (const std::exception& error) {
      problem = error.what();
    }
    ++checks.failed;
    checks.worst = 1.0;
    trial_.report(tally_, {what, trial_.small->kind, name_, problem, trial_.again(name_)});
  }

  [[nodiscard]] Draws with_threads() const {
    RunOptions options = short_run(trial_);
    options.threads = 3;
    return draws_of(run(model_, sampler_, options).trace);
  }

  /// From the state of some round in the middle, that of warm-up or of sampling.
  [[nodiscard]] Draws resumed() const {
    Run other(model_, sampler_, short_run(trial_));
    if (!saved_.empty()) other.load(saved_[trial_.number * 7 % saved_.size()]);
    return complete(other);
  }

  [[nodiscard]] Draws extended() const {
    RunOptions options = short_run(trial_);
    options.draws = 1 + trial_.number % (kDraws - 1);
    Run shorter(model_, sampler_, options);
    shorter.warm_up();
    shorter.sample(options.draws);
    Run longer(model_, sampler_, short_run(trial_));
    longer.load(shorter.save());
    return complete(longer);
  }

  [[nodiscard]] Draws one_by_one() const {
    Draws all;
    for (std::size_t c = 0; c < kChains; ++c) {
      RunOptions options = short_run(trial_);
      options.chains = 1;
      options.first_chain = c;
      const Draws one = draws_of(run(model_, sampler_, options).trace);
      if (c == 0) all.x = States(model_.layout);
      all.x.append(one.x, 0, one.x.rows());
      all.acceptance_rate.insert(all.acceptance_rate.end(), one.acceptance_rate.begin(), one.acceptance_rate.end());
      all.monitors.resize(one.monitors.size());
      for (std::size_t m = 0; m < one.monitors.size(); ++m) {
        all.monitors[m].insert(all.monitors[m].end(), one.monitors[m].begin(), one.monitors[m].end());
      }
    }
    return all;
  }

  [[nodiscard]] Draws by_program() const {
    const std::string file = (std::filesystem::temp_directory_path() /
                              fmt::format("poise-laws-{}-{}-{}.zarr", ::getpid(), trial_.seed, trial_.number))
                                 .string();
    const ModelFiles& files = trial_.small->files;
    std::string command = fmt::format(
        "'{}' sample '{}' --sampler '{}' --chains {} --warmup 25 --draws {} --seed {} --threads 2 --quiet "
        "--out '{}'",
        trial_.program, trial_.small->text, name_, kChains, kDraws, trial_.run_seed(), file);
    if (!files.field.empty()) command += fmt::format(" --field '{}'", files.field);
    if (!files.evidence.empty()) command += fmt::format(" --evidence '{}'", files.evidence);
    const int code = std::system((command + " >/dev/null 2>&1").c_str());  // NOLINT: our own words
    Draws found;
    if (code == 0) found = draws_of(read_run(file).trace);
    std::filesystem::remove_all(file);
    if (code != 0) throw std::runtime_error("the program fails: " + command);
    return found;
  }

  const Trial& trial_;
  const Model& model_;
  std::string name_;
  Sampler sampler_;
  Tally& tally_;
  std::vector<std::string> saved_;
  Draws whole_;
};

/// First-order samplers take exact ratios where these cost no more than a gradient.
void check_first_order(const Trial& trial, Tally& tally) {
  using Pair = std::array<const char*, 2>;
  constexpr std::array<Pair, 4> pairs = {{{"gwg", "lb"}, {"flsb", "lsb"}, {"flsb1", "lsb1"}, {"flsb2", "lsb2"}}};
  const Pair& pair = pairs[trial.number / kinds().size() % pairs.size()];
  if (!trial.small->model.sparse || !trial.wants(pair[0]) || !takes(trial.small->model, pair[0])) return;
  const auto draws = [&](const char* name) {
    return draws_of(run(trial.small->model, parse_sampler(name), short_run(trial)).trace);
  };
  constexpr const char* what = "first-order samplers on sparse targets";
  Checks& checks = tally.checks[what];
  ++checks.done;
  if (draws(pair[0]) == draws(pair[1])) return;
  ++checks.failed;
  checks.worst = 1.0;
  trial.report(tally, {what, trial.small->kind, pair[0], fmt::format("draws are not those of {}", pair[1]),
                       trial.again(pair[0])});
}

}  // namespace

void check_identities(const Trial& trial, Tally& tally) {
  check_first_order(trial, tally);
  for (const std::string& name : trial.samplers) {
    if (trial.sampler.empty() && trial.turn(name) % kTurns != 0) continue;
    try {
      Identities(trial, name, tally).check();
    } catch (const std::exception& error) {
      trial.report(tally, {"identity", trial.small->kind, name, error.what(), trial.again(name)});
    }
  }
}

}  // namespace poise::laws
