/// The options of a run described, and what settings make no sense.
#include <poise/run.hpp>

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "base/options.hpp"
#include "run/recorder.hpp"

namespace poise {

namespace {

/// Draws are held in memory unless there is a file, which can hold the states.
void check_memory(const RunOptions& options, const Model& model, std::vector<std::string>& problems) {
  const double count = static_cast<double>(options.chains) * static_cast<double>(options.draws);
  const double bytes = count * bytes_per_draw(model, options.keep);
  const double most = memory_for_draws(options);
  if (options.keep != Keep::draws || options.seconds > 0.0 || bytes <= most) return;
  constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;
  problems.push_back(fmt::format(
      "{} chains of {} draws of {} variables take {:.1f} GiB, more than the {:.1f} GiB that draws may take: "
      "write them to a file, keep monitors only, or make fewer draws",
      options.chains, options.draws, model.layout.variables, bytes / gibibyte, most / gibibyte));
}

}  // namespace

void RunOptions::describe(OptionVisitor& visit) {
  using enum Option::Role;
  constexpr std::uint64_t many = std::uint64_t{1} << 62;
  constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;
  visit({"chains", "N", "Chains", identity, nullptr, 1, std::uint64_t{1} << 31}, chains);
  visit({"warmup", "N", "Draws' worth of steps before the first draw", setting,
         "1000 sweeps; the later half only while learning continues", 0, many},
        warmup);
  visit({"draws", "N", "Recorded draws per chain", setting, nullptr, 1, many}, draws);
  visit({"thin", "K", "Steps per draw", identity, "one sweep; 4 where a step changes many variables", 1, many}, thin);
  visit({"seed", "S", "Seed of all random numbers", identity}, seed);
  visit({"threads", "T", "Threads; the draws do not depend on it", setting, "0: all cores, or a rank's share of them",
         0, 1 << 16},
        threads);
  visit({.name = "device",
         .value = "DEVICE",
         .help = "Where chains run: cpu, cuda (a GPU; 'poise devices' lists them), or auto: a GPU where it is faster",
         .choices = {"cpu", "cuda", "auto"}},
        device);
  visit({"seconds", "S", "This long in all, warm-up included, instead of a number of draws", setting, ""}, seconds);
  visit({.name = "init",
         .value = "HOW",
         .help = "Where chains begin: uniform, zeros, dispersed (random, lowest, highest and mirrored levels in turn), "
                 "or your own values, one per variable: a file, in Python an array",
         .choices = {"uniform", "zeros", "dispersed"},
         .stored_only = "given"},
        start);
  visit({.name = "keep",
         .value = "WHAT",
         .help = "What is kept: draws, or monitors only",
         .role = identity,
         .choices = {"draws", "monitors"}},
        keep);
  double gibibytes = memory / gibibyte;
  visit({"memory", "GIB", "GiB that draws may take; what goes beyond it is in the file only, and diagnosed from there",
         machine, "a third of the machine's"},
        gibibytes);
  memory = gibibytes * gibibyte;
  visit({"first_chain", "C", "Number of the first chain: its random numbers are those of that chain of a longer run",
         identity, nullptr, 0, std::uint64_t{1} << 40},
        first_chain);
}

void CheckpointOptions::describe(OptionVisitor& visit) {
  visit({"checkpoint", "", "Leave a checkpoint beside the file however short the run", Option::Role::machine,
         "where it lasts over a minute"},
        always);
  double seconds = interval.count();
  visit({"checkpoint_every", "S", "Seconds between two checkpoints", Option::Role::machine}, seconds);
  interval = std::chrono::duration<double>(seconds);
}

void RunOptions::check(const Model& model, bool has_sink) const {
  std::vector<std::string> problems;
  const Index n = model.layout.variables;
  if (chains == 0) problems.emplace_back("the number of chains must be at least 1");
  if (draws == 0 && seconds <= 0.0) problems.emplace_back("the number of draws must be at least 1");
  if (!(seconds >= 0.0) || std::isinf(seconds)) problems.emplace_back("the seconds must be a positive number");
  if (start == Start::given && given.size() != n && given.size() != chains * n) {
    problems.push_back(fmt::format("the initial state has {} values, but the model has {} variables", given.size(), n));
  } else if (start == Start::given) {
    for (std::size_t k = 0; k < given.size(); ++k) {
      const auto i = static_cast<Index>(k % n);
      if (given[k] < model.layout.cardinality(i)) continue;
      problems.push_back(fmt::format("the initial value of variable {} is level {}, but it has only {} levels", i,
                                     given[k], model.layout.cardinality(i)));
      break;
    }
  }
  if (!(memory >= 0.0) || std::isinf(memory)) problems.emplace_back("the memory for draws must be a positive number");
  if (!has_sink) check_memory(*this, model, problems);
  if (!problems.empty()) throw InputError(fmt::format("{}", fmt::join(problems, "; ")));
}

}  // namespace poise
